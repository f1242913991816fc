# SPDX-License-Identifier: Apache-2.0
# Begins an instance of a function in its sandbox: unpacks the archive there, says by one byte that it is ready, and
# waits for the line that names an invocation. What it writes to 3 is the result, everything else is its log.
runtime=$1 entry=$2
exec 3>&1 1>&2
cd "$HOME/function" || exit 1
tar --extract --no-same-owner --file "$HOME/.function/archive" || {
	echo "the archive cannot be unpacked" >&2
	exit 1
}
case $runtime in
python) exec python3 -I "$HOME/.function/python.py" "$entry" ;;
javascript) exec node "$HOME/.function/javascript.js" "$entry" ;;
esac
if [ ! -f "./$entry" ] || [ ! -x "./$entry" ]; then
	echo "the archive has no executable file $entry" >&2
	exit 1
fi
printf '\006' >&3
read -r ATOLL_INVOCATION size || exit 1
export ATOLL_INVOCATION
exec "./$entry" 1>&3 3>&-
