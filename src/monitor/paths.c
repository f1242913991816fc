/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/paths.h"

#include <string.h>

#include "base/str.h"

enum place { WITHIN, NAME, ENDING, BEGINNING };

struct mark {
	enum place place;
	const char *text;
};

static const struct mark secrets[] = {
	{ WITHIN, "/.ssh/" },		 { WITHIN, "/.aws/" },		  { WITHIN, "/.gnupg/" },
	{ WITHIN, "/.config/gcloud/" },	 { WITHIN, "/.azure/" },	  { WITHIN, "/.docker/config.json" },
	{ WITHIN, "/.kube/config" },	 { WITHIN, "/.config/gh/hosts" }, { WITHIN, "/.password-store/" },
	{ WITHIN, "/.mozilla/firefox/" }, { WITHIN, "/.local/share/keyrings/" },
	{ NAME, ".netrc" },		 { NAME, ".npmrc" },		  { NAME, ".pypirc" },
	{ NAME, ".git-credentials" },	 { NAME, ".pgpass" },		  { NAME, ".vault-token" },
	{ NAME, "credentials.json" },	 { NAME, "id_rsa" },		  { NAME, "id_ed25519" },
	{ NAME, "id_ecdsa" },		 { NAME, ".env" },		  { NAME, "shadow" },
	{ ENDING, ".pem" },		 { ENDING, ".key" },		  { ENDING, ".p12" },
	{ ENDING, ".pfx" },		 { ENDING, ".kdbx" },		  { ENDING, "/.env.local" },
	{ ENDING, "/.env.production" },
};

/* What every system ships and every program reads. */
static const struct mark no_secrets[] = {
	{ BEGINNING, "/usr/" }, { BEGINNING, "/etc/ssl/" }, { BEGINNING, "/etc/pki/" }, { BEGINNING, "/lib" },
	{ BEGINNING, "/run/atoll/" },
};

static const struct mark startup[] = {
	{ WITHIN, "/.git/hooks/" },	   { WITHIN, "/.husky/" },	   { WITHIN, "/.config/autostart/" },
	{ WITHIN, "/.config/systemd/" },   { WITHIN, "/.config/fish/" },   { WITHIN, "/.github/workflows/" },
	{ WITHIN, "/cron.d/" },		   { WITHIN, "/crontabs/" },	   { WITHIN, "/.vscode/tasks.json" },
	{ BEGINNING, "/etc/profile" },	   { BEGINNING, "/etc/cron" },	   { BEGINNING, "/etc/systemd/" },
	{ NAME, ".bashrc" },		   { NAME, ".bash_profile" },	   { NAME, ".bash_login" },
	{ NAME, ".bash_logout" },	   { NAME, ".profile" },	   { NAME, ".zshrc" },
	{ NAME, ".zshenv" },		   { NAME, ".zprofile" },	   { NAME, ".xprofile" },
	{ NAME, ".xinitrc" },		   { NAME, ".inputrc" },	   { NAME, ".vimrc" },
	{ NAME, ".envrc" },		   { NAME, ".gitconfig" },	   { NAME, "authorized_keys" },
	{ NAME, "ld.so.preload" },
};

static bool has(const struct mark *mark, const char *path, const char *name)
{
	switch (mark->place) {
	case WITHIN:
		return strstr(path, mark->text) != NULL;
	case NAME:
		return str_equal(name, mark->text);
	case ENDING:
		return str_has_suffix(path, mark->text);
	case BEGINNING:
		return str_has_prefix(path, mark->text);
	}
	return false;
}

static bool any(const struct mark *marks, size_t count, const char *path)
{
	const char *name = path_basename(path);

	for (size_t i = 0; i < count; i++)
		if (has(&marks[i], path, name))
			return true;
	return false;
}

bool monitor_is_secret_path(const char *path)
{
	return any(secrets, ARRAY_SIZE(secrets), path) && !any(no_secrets, ARRAY_SIZE(no_secrets), path);
}

bool monitor_is_startup_path(const char *path)
{
	return any(startup, ARRAY_SIZE(startup), path);
}
