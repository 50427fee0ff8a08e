# Says what kind of host this is and how one becomes root, and runs @RECEIVE@ as root; @AS_ROOT@ does that by sudo. Where nobody
# becomes root it is run all the same, for what can be seen without.
if [ "$(id -u)" = 0 ]; then
	by=root
elif ! command -v sudo >/dev/null 2>&1; then
	by=nobody
elif sudo -kn -- /bin/sh -c : </dev/null 2>/dev/null; then
	by=sudo
else
	by=password
fi
printf 'sshoal-tracer: machine %s %s\n' "$(uname -m)" "$by"
set -- @RECEIVE@
case $by in
nobody | root) exec /bin/sh -c "$1" ;;
password)
	attempt=0
	while IFS= read -r way && [ "$way" = sudo ]; do
		IFS= read -r p
		attempt=$((attempt + 1))
		said=$(printf '%s\n' "$p" 2>/dev/null | sudo -kS -p '' -- /bin/sh -c : 2>&1) && break
		unset p
		printf 'sshoal-tracer: attempt %s wrong %s\n' "$attempt" "$(printf '%s\n' "$said" | tail -n 1)"
	done
	unset p
	[ "$way" = sudo ] || exec /bin/sh -c "$1"
	printf 'sshoal-tracer: attempt %s right\n' "$attempt"
	;;
esac
@AS_ROOT@
