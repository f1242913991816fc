# bash completion for atoll; made by `atoll help --completion bash`
_atoll_reply()
{
	mapfile -t COMPREPLY < <(compgen "$@" -- "$cur")
}

_atoll_policies()
{
	atoll policy list 2>/dev/null | cut -d' ' -f1
}

_atoll()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]} i
	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_atoll_reply -W 'alerts apply approve ask attach baseline checkpoints cp deny diff discard doctor dry-run exec fork function gc grants help log policy ps restore review run secret serve snapshot stop template token top trust undo verify version'
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then
			_command_offset $((i + 1)) 2>/dev/null || _atoll_reply -c
			return
		fi
	done
	case $verb:$prev in
	apply:--exclude|apply:-x) return ;;
	apply:--allow-flagged) compopt -o filenames; _atoll_reply -f; return ;;
	apply:--branch) return ;;
	apply:--message|apply:-m) return ;;
	apply:--patch) compopt -o filenames; _atoll_reply -f; return ;;
	approve:--uses) return ;;
	approve:--for) return ;;
	attach:--command|attach:-c) return ;;
	attach:--detach-keys) return ;;
	doctor:--policy|doctor:-p) compopt -o filenames; _atoll_reply -f -W "$(_atoll_policies)"; return ;;
	doctor:--trust|doctor:-t) _atoll_reply -W 'none low medium high full'; return ;;
	dry-run:--policy|dry-run:-p) compopt -o filenames; _atoll_reply -f -W "$(_atoll_policies)"; return ;;
	dry-run:--trust|dry-run:-t) _atoll_reply -W 'none low medium high full'; return ;;
	dry-run:--env|dry-run:-e) return ;;
	dry-run:--cwd|dry-run:-C) compopt -o filenames; _atoll_reply -f; return ;;
	dry-run:--project) compopt -o filenames; _atoll_reply -f; return ;;
	dry-run:--replay) compopt -o filenames; _atoll_reply -f; return ;;
	dry-run:--task) return ;;
	dry-run:--accept) return ;;
	exec:--env|exec:-e) return ;;
	exec:--cwd|exec:-C) compopt -o filenames; _atoll_reply -f; return ;;
	exec:--token) compopt -o filenames; _atoll_reply -f; return ;;
	exec:--tag) return ;;
	exec:--detach-keys) return ;;
	function:--name|function:-n) return ;;
	function:--entry) return ;;
	function:--runtime) return ;;
	function:--memory) return ;;
	function:--timeout) return ;;
	function:--concurrency) return ;;
	function:--env|function:-e) return ;;
	function:--allow) return ;;
	function:--data|function:-d) return ;;
	gc:--older-than) return ;;
	gc:--keep) return ;;
	gc:--max-size) return ;;
	help:--completion) _atoll_reply -W 'bash zsh fish'; return ;;
	log:--type|log:-t) return ;;
	log:--since|log:-s) return ;;
	log:--lines|log:-n) return ;;
	log:--head) return ;;
	policy:--policy|policy:-p) compopt -o filenames; _atoll_reply -f -W "$(_atoll_policies)"; return ;;
	policy:--trust|policy:-t) _atoll_reply -W 'none low medium high full'; return ;;
	policy:--project) compopt -o filenames; _atoll_reply -f; return ;;
	policy:--output|policy:-o) compopt -o filenames; _atoll_reply -f; return ;;
	policy:--session) return ;;
	review:--then-exit) return ;;
	run:--policy|run:-p) compopt -o filenames; _atoll_reply -f -W "$(_atoll_policies)"; return ;;
	run:--trust|run:-t) _atoll_reply -W 'none low medium high full'; return ;;
	run:--name|run:-n) return ;;
	run:--env|run:-e) return ;;
	run:--unmask) compopt -o filenames; _atoll_reply -f; return ;;
	run:--publish) return ;;
	run:--host-port) return ;;
	run:--degrade) return ;;
	run:--root) return ;;
	run:--cwd|run:-C) compopt -o filenames; _atoll_reply -f; return ;;
	run:--project) compopt -o filenames; _atoll_reply -f; return ;;
	run:--report) compopt -o filenames; _atoll_reply -f; return ;;
	run:--record) compopt -o filenames; _atoll_reply -f; return ;;
	run:--replay) compopt -o filenames; _atoll_reply -f; return ;;
	run:--token) compopt -o filenames; _atoll_reply -f; return ;;
	run:--agent) return ;;
	run:--confidence) return ;;
	run:--task) return ;;
	run:--continue) return ;;
	serve:--listen|serve:-l) return ;;
	serve:--domain) return ;;
	serve:--host) return ;;
	serve:--tls-cert) compopt -o filenames; _atoll_reply -f; return ;;
	serve:--tls-key) compopt -o filenames; _atoll_reply -f; return ;;
	serve:--policy|serve:-p) compopt -o filenames; _atoll_reply -f -W "$(_atoll_policies)"; return ;;
	serve:--sandboxes) return ;;
	serve:--connections) return ;;
	serve:--pool) return ;;
	serve:--config) compopt -o filenames; _atoll_reply -f; return ;;
	serve:--role) return ;;
	serve:--owner) return ;;
	serve:--rate) return ;;
	serve:--memory) return ;;
	snapshot:--message|snapshot:-m) return ;;
	stop:--time|stop:-t) return ;;
	token:--allow) return ;;
	token:--limit) return ;;
	token:--expires) return ;;
	token:--not-before) return ;;
	token:--uses) return ;;
	token:--project) compopt -o filenames; _atoll_reply -f; return ;;
	token:--agent) return ;;
	token:--policy|token:-p) compopt -o filenames; _atoll_reply -f -W "$(_atoll_policies)"; return ;;
	top:--delay|top:-d) return ;;
	top:--sort|top:-s) return ;;
	top:--filter|top:-f) return ;;
	trust:--raise) _atoll_reply -W 'none low medium high full'; return ;;
	trust:--lower) _atoll_reply -W 'none low medium high full'; return ;;
	trust:--reason) return ;;
	undo:--apply|undo:-n) return ;;
	verify:--fail-on) return ;;
	verify:--language|verify:-l) return ;;
	verify:--rules|verify:-r) compopt -o filenames; _atoll_reply -f; return ;;
	esac
	case $verb in
	alerts)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--json --help'
		else
			:
		fi ;;
	apply)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-i --interactive -x --exclude --allow-flagged --ours --keep-host --theirs --take-session --merge --markers --commit --branch -m --message --patch --dry-run -q --quiet --json --resume --help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) "
		fi ;;
	approve)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--uses --for --session --forever --json --help'
		else
			:
		fi ;;
	ask)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--once -f --follow --json --help'
		else
			_atoll_reply -W "$(atoll ps -q --names 2>/dev/null) "
		fi ;;
	attach)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-c --command --no-stdin --no-signals --detach-keys --help'
		else
			:
		fi ;;
	baseline)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-a --all --json --help'
		else
			:
		fi ;;
	checkpoints)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--json --help'
		else
			:
		fi ;;
	cp)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-p --parents --help'
		else
			_atoll_reply -W "$(atoll ps -q --names 2>/dev/null) "
		fi ;;
	deny)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--json --help'
		else
			:
		fi ;;
	diff)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-p --patch --stat --json --flagged --help'
		else
			:
		fi ;;
	discard)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-q --quiet --help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) "
		fi ;;
	doctor)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--probe -p --policy -t --trust --json --help'
		else
			:
		fi ;;
	dry-run)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-p --policy -t --trust -e --env -C --cwd --project --replay --task -y --yes --if-clean --accept -q --quiet --json --help'
		else
			:
		fi ;;
	exec)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-e --env -C --cwd --token --no-tty --keep -d --detach -t --tty --tag --detach-keys --json --help'
		else
			_atoll_reply -W "$(atoll ps -q --names 2>/dev/null) "
		fi ;;
	fork)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) "
		fi ;;
	function)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-n --name --entry --runtime --memory --timeout --concurrency -e --env --allow --internet -d --data --json --help'
		else
			:
		fi ;;
	gc)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--older-than --keep --max-size --unreviewed -n --dry-run --json --help'
		else
			:
		fi ;;
	grants)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--json --help'
		else
			_atoll_reply -W "$(atoll ps -q --names 2>/dev/null) revoke"
		fi ;;
	help)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--completion --help'
		else
			_atoll_reply -W 'alerts apply approve ask attach baseline checkpoints cp deny diff discard doctor dry-run exec fork function gc grants help log policy ps restore review run secret serve snapshot stop template token top trust undo verify version'
		fi ;;
	log)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-f --follow --json -t --type -s --since --denied -n --lines --head --net --help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) verify"
		fi ;;
	policy)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-p --policy -t --trust --project -o --output --session --json --help'
		else
			compopt -o filenames
			_atoll_reply -f -W "list check show explain diff learn set test $(_atoll_policies)"
		fi ;;
	ps)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-a --all -q --quiet --names -c --commands --json --help'
		else
			:
		fi ;;
	restore)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-q --quiet --help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) "
		fi ;;
	review)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--then-exit --help'
		else
			:
		fi ;;
	run)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-p --policy -t --trust -d --detach -n --name -e --env --unmask --publish --host-port --degrade --root -C --cwd --project --report --record --replay --token --agent --confidence --task --narrow -q --quiet --no-tty --apply-on-success --discard --keep --no-review-prompt --continue --json --help'
		else
			_atoll_reply -c
		fi ;;
	secret)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--json --help'
		else
			_atoll_reply -W 'set list remove rename passphrase unlock lock'
		fi ;;
	serve)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-l --listen --domain --host --tls-cert --tls-key --beyond-loopback -p --policy --sandboxes --connections --pool --config --check --json --role --owner --rate --memory --help'
		else
			_atoll_reply -W 'key'
		fi ;;
	snapshot)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-m --message -l --list --remove --turn --auto --json --help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) "
		fi ;;
	stop)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-a --all -t --time --help'
		else
			_atoll_reply -W "$(atoll ps -q --names 2>/dev/null) "
		fi ;;
	template)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--json -q --quiet --help'
		else
			:
		fi ;;
	token)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--allow --limit --expires --not-before --uses --project --agent --seal --remove --json -p --policy --help'
		else
			_atoll_reply -W 'mint narrow show verify list revoke trust key'
		fi ;;
	top)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-d --delay -s --sort -r --reverse -f --filter --once --json --help'
		else
			:
		fi ;;
	trust)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--raise --lower --reset --reason --json --help'
		else
			:
		fi ;;
	undo)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '-n --apply --list --dry-run --rehearse -q --quiet --json --help'
		else
			_atoll_reply -W "$(atoll ps -aq --names 2>/dev/null) "
		fi ;;
	verify)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--command --fail-on --json -l --language --no-own-rules --operations -r --rules --sarif --test-rules --help'
		else
			:
		fi ;;
	version)
		if [[ $cur == -* ]]; then
			_atoll_reply -W '--help'
		else
			:
		fi ;;
	esac
}
complete -F _atoll atoll
