# What an unprivileged user can find out about a host that has to do with logins. Read by sh(1) of any make, from standard
# input. Each line that it prints is "NAME VALUE"; "+NAME" and "-NAME" are the beginning and the end of what is timed where
# the lines arrive. It writes nothing but that, and reads no more of a file than this:
limit=65536
# Octets of authorized_keys in which lines are counted; processes, scripts and folders that are looked at.
keys_limit=16777216
processes_limit=4096
scripts_limit=64
depth_limit=32
# Octets of sshd's program among which the libraries that it needs are named.
program_limit=1048576
# How deep files of sshd's configuration that include others are followed.
includes_limit=8
# Seconds after which a script of update-motd.d is ended, and all of this.
motd_seconds=10
all_seconds=30

say() { printf '%s %s\n' "$1" "$2"; }
# `end` is a word of zsh's own.
begin() { printf '+%s\n' "$1"; }
finish() { printf -- '-%s\n' "$1"; }
has() { command -v "$1" >/dev/null 2>&1; }
# The command behind the name is timed under it.
timed() {
	name=$1
	shift
	begin "$name"
	"$@" >/dev/null 2>&1
	result=$?
	finish "$name"
	# By SIGKILL: it would have taken longer.
	[ "$result" != 137 ] || say cut_short "$name"
}

# Hundredths of a second since the host was started.
clock() {
	now=0
	read -r now rest </proc/uptime && now=${now%.*}${now#*.}
} 2>/dev/null

# What takes less than so many of these is timed three times: others who use the host meanwhile make one of them longer.
brief=25
timed_well() {
	clock
	since=$now
	timed "$@"
	clock
	[ "$now" != 0 ] && [ $((now - since)) -lt "$brief" ] || return 0
	timed "$@"
	timed "$@"
}

# status PID: its parent, and when it was started.
status() {
	read -r line <"/proc/$1/stat" || return 1
	line=${line##*') '}
	set -- $line
	parent=$2 started=${20}
} 2>/dev/null

# The children of a process: as the kernel lists them, or else by a look at all.
children() {
	found=
	if [ -e "/proc/$1/task/$1/children" ]; then
		for list in "/proc/$1/task/"*/children; do
			line=
			# It has no end of line.
			read -r line <"$list" || :
			found="$found $line"
		done
		return
	fi
	for folder in /proc/[0-9]*; do
		status "${folder#/proc/}" && [ "$parent" = "$1" ] && found="$found ${folder#/proc/}"
	done
} 2>/dev/null

# Ends processes with all that they have started, but for the watchdog itself. Who is stopped starts no others meanwhile.
end_processes() {
	stopped=
	while [ $# -gt 0 ]; do
		pid=$1
		shift
		[ "$pid" != "$own" ] && kill -s STOP "$pid" || continue
		stopped="$stopped $pid"
		children "$pid"
		set -- "$@" $found
	done
	kill -s KILL $stopped
}

# Runs beside the rest, and ends what nobody else would: a script of update-motd.d that does not come to its end, and everything once nobody
# hears us any more or it takes too long. It sleeps but for a moment each second, so that what is quick never meets it.
watchdog() {
	read -r own rest </proc/self/stat
	# Whether anybody hears us is told by what becomes of the line.
	trap '' PIPE
	trap leave TERM
	seconds=0 same=0 before=
	sleep 1 >/dev/null &
	while :; do
		wait "$!"
		# At once, so that leave finds one that is there.
		sleep 1 >/dev/null &
		# Whoever has this number else is not ours.
		status "$own" && [ "$parent" = "$$" ] || leave
		seconds=$((seconds + 1))
		if [ "$seconds" -ge "$all_seconds" ] || ! say host.alive yes; then
			end_processes "$$"
			leave
		fi
		[ -e "/proc/$$/fd/4" ] || continue
		children "$$"
		[ "$found" = "$before" ] && same=$((same + 1)) || same=0
		before=$found
		[ "$same" -lt "$motd_seconds" ] || end_processes $found
	done
}

# Ends the watchdog, with its sleep.
leave() {
	# To some shells nothing is 0, which would be everybody.
	case $! in
	'' | 0) ;;
	*) kill -s KILL "$!" ;;
	esac
	exit
}

# The processes of sshd above us: the listener, if there is one, and the one that it has for this connection.
find_sshd() {
	listener= connection= session= above= pid=$$ depth=0
	while [ "$depth" -lt "$depth_limit" ] && status "$pid" && [ "$parent" -ge 1 ]; do
		depth=$((depth + 1)) pid=$parent name=
		read -r name <"/proc/$pid/comm"
		case $name in
		sshd*) connection=$listener listener=$pid session=${session:-$pid} ;;
		*) [ -n "$listener" ] && above=$name && break ;;
		esac
	done
	title=$(tr '\000' ' ' <"/proc/$listener/cmdline" | head -c 4096)
	case $title in
	# Before OpenSSH 8.2 its title was its command line.
	*'[listener]'* | */sshd' '*) say host.listener yes ;;
	*)
		connection=$listener title=
		[ -n "$above" ] && say host.listener no
		;;
	esac
	sshd_config=/etc/ssh/sshd_config
	case $title in
	*' -f '*)
		sshd_config=${title#*' -f '}
		sshd_config=${sshd_config%% *}
		[ "$sshd_config" = /etc/ssh/sshd_config ] || say host.sshd_config.file "$sshd_config"
		;;
	esac
} 2>/dev/null

# Nanoseconds for which sshd's processes of this login could run and did not: the second number (Linux, sched-stats.rst).
waited() {
	[ "$session" = "$connection" ] && set -- "$session" || set -- "$session" "$connection"
	sum=
	for pid in "$@"; do
		read -r ran waiting rest <"/proc/$pid/schedstat" && [ "$ran" != 0 ] && sum=$((${sum:-0} + waiting))
	done
	[ -n "$sum" ] && say host.waited "$sum"
} 2>/dev/null

count_processes() {
	status "$connection" || return
	since=$started count=0 seen=0
	for folder in /proc/[0-9]*; do
		seen=$((seen + 1))
		[ "$seen" -gt "$processes_limit" ] && break
		status "${folder#/proc/}" && [ "$started" -ge "$since" ] && count=$((count + 1))
	done
	say host.processes.login "$count"
} 2>/dev/null

startup_files() {
	found=
	case ${SHELL##*/} in
	bash) set -- /etc/bash.bashrc /etc/bashrc "$HOME/.bashrc" "${BASH_ENV-}" ;;
	zsh) set -- /etc/zshenv /etc/zsh/zshenv "${ZDOTDIR:-$HOME}/.zshenv" ;;
	fish) set -- /etc/fish/config.fish "$HOME/.config/fish/config.fish" ;;
	*csh) set -- /etc/csh.cshrc "$HOME/.cshrc" "$HOME/.tcshrc" ;;
	*) set -- ;;
	esac
	for file in "$@"; do
		[ -n "$file" ] && [ -r "$file" ] && found="$found $file"
	done
	say host.shell_startup.files "${found# }"
}

# The name of an address, and whether that has this address, as UseDNS asks.
client_name() {
	set -- $(getent hosts "$1")
	[ -z "${2-}" ] || getent ahosts "$2"
}

pressure() {
	for kind in cpu io memory; do
		while read -r some average rest; do
			[ "$some" = some ] && say "host.pressure.$kind" "${average#avg10=}"
		done <"/proc/pressure/$kind"
	done
} 2>/dev/null

processor() {
	read -r name line </proc/stat && say "$1" "$line"
} 2>/dev/null

# quotas WHEN: the tightest quota of the control groups that we are in, and sshd itself, and how often each was throttled so far: who logs in
# is moved to a group of its own (pam_systemd).
quotas() {
	quota self "$1"
	[ -n "$listener" ] && quota "$listener" "$1"
}

# quota PROCESS [WHEN]: the same of one process: version 2, then version 1.
quota() {
	group= old=
	while IFS=: read -r number kind path; do
		case $number:$kind in
		0:) group=/sys/fs/cgroup$path ;;
		*:cpu | *:cpu,* | *:*,cpu | *:*,cpu,*) [ -d /sys/fs/cgroup/cpu ] && old=/sys/fs/cgroup/cpu$path ;;
		esac
	done <"/proc/$1/cgroup"
	depth=0
	while [ -n "$group" ] && [ "$depth" -lt "$depth_limit" ]; do
		depth=$((depth + 1))
		read -r line <"$group/cpu.max" && say host.cpu_quota "$line"
		throttled "$group" "${2-}"
		[ "$group" = /sys/fs/cgroup ] && break
		group=${group%/*}
	done
	[ -n "$old" ] || return
	read -r allowed <"$old/cpu.cfs_quota_us" && read -r period <"$old/cpu.cfs_period_us" &&
		say host.cpu_quota "$allowed $period"
	throttled "$old" "${2-}"
} 2>/dev/null

throttled() {
	[ -n "$2" ] || return
	while read -r name value; do
		[ "$name" = nr_throttled ] && say "host.throttled.$2" "$value $1"
	done <"$1/cpu.stat"
}

# sshd_lines WORDS: lines of sshd's configuration that begin with one of these words, in the order in which sshd reads them, each
# behind "set", or "match" where it is for some logins only. "file" tells that there is one, "unreadable" that not all may be read.
sshd_lines() {
	words=$1
	sshd_file "$sshd_config" 0 set
} 2>/dev/null

# sshd_file FILE DEPTH KIND. A Match in it ends with it.
sshd_file() {
	[ -e "$1" ] || return 0
	if [ ! -r "$1" ] || [ "$2" -ge "$includes_limit" ]; then
		echo unreadable
		return
	fi
	echo file
	head -c "$limit" "$1" | sed -n -E 's/^[[:space:]]*([[:alnum:]]+)([[:space:]]*=[[:space:]]*|[[:space:]]+)/\1 /p' |
		grep -iE "^(match|include|$words) " | head -n 100 | {
		kind=$3
		while read -r word value; do
			case $word in
			[Mm][Aa][Tt][Cc][Hh])
				case $value in
				[Aa][Ll][Ll] | [Aa][Ll][Ll][!A-Za-z]*) kind=$3 ;;
				*) kind=match ;;
				esac
				;;
			[Ii][Nn][Cc][Ll][Uu][Dd][Ee]) sshd_included "$value" $(($2 + 1)) "$kind" ;;
			*) printf '%s %s %s\n' "$kind" "$word" "$value" ;;
			esac
		done
	}
}

# sshd_included PATTERNS DEPTH KIND
sshd_included() {
	depth=$2 kind_within=$3
	set -f
	set -- $(printf '%s\n' "$1" | sed -e 's/[[:space:]]#.*//' -e 's/"//g')
	set +f
	for pattern in "$@"; do
		case $pattern in
		/*) ;;
		*) pattern=/etc/ssh/$pattern ;;
		esac
		folder=${pattern%/*}
		# What stands in it nobody tells.
		if [ -d "$folder" ] && { [ ! -r "$folder" ] || [ ! -x "$folder" ]; }; then
			echo unreadable
			continue
		fi
		for file in $pattern; do
			sshd_file "$file" "$depth" "$kind_within"
		done
	done
}

sshd_settings() {
	words='UseDNS|UsePAM|AuthorizedKeysCommand|RevokedKeys|MaxStartups|PerSourceMaxStartups|PermitUserRC|X11Forwarding|HostKey'
	readable=
	sshd_lines "$words" | {
		while read -r kind line; do
			case $kind in
			file) readable=${readable:-yes} ;;
			unreadable) readable=no ;;
			set) say sshd "$line" ;;
			match) say sshd.match "$line" ;;
			esac
		done
		[ -n "$readable" ] && say host.sshd_config.readable "$readable"
	}
}

# In which files sshd looks for the user's keys.
keys_files() {
	sshd_lines AuthorizedKeysFile | while read -r kind keyword files; do
		[ "$kind" = set ] || continue
		printf '%s\n' "$files" | sed -e 's/[[:space:]]#.*//' -e 's/"//g' -e "s|%h|$HOME|g" -e "s|%u|${LOGNAME:-${USER-}}|g"
		return
	done
}

keys() {
	set -- $(keys_files)
	[ $# -gt 0 ] || set -- .ssh/authorized_keys .ssh/authorized_keys2
	octets=0 lines=0 found=
	for file in "$@"; do
		case $file in
		/*) ;;
		*) file=$HOME/$file ;;
		esac
		[ -r "$file" ] || continue
		found=yes
		set -- $(ls -lnL "$file")
		octets=$((octets + $5))
		lines=$((lines + $(head -c "$keys_limit" "$file" | wc -l)))
	done
	[ -n "$found" ] || return
	say host.authorized_keys.octets "$octets"
	say host.authorized_keys.lines "$lines"
} 2>/dev/null

# Whether sshd is built with libwrap.
libwrap() {
	program=${title#sshd: }
	program=${program%% *}
	case $program in
	/*) ;;
	*) program=/usr/sbin/sshd ;;
	esac
	[ -r "$program" ] || return
	for file in "$program" /usr/lib/openssh/sshd-session /usr/libexec/openssh/sshd-session /usr/libexec/sshd-session; do
		[ -r "$file" ] || continue
		head -c "$program_limit" "$file" | grep -q 'libwrap\.so' && say host.libwrap yes && return
	done
	say host.libwrap no
} 2>/dev/null

# What libwrap goes by: hosts_access(5).
wrappers() {
	for file in /etc/hosts.allow /etc/hosts.deny; do
		[ -e "$file" ] && [ ! -r "$file" ] && return
	done
	say host.tcp_wrappers ''
	cat /etc/hosts.allow /etc/hosts.deny | head -c "$limit" | grep -E '^[^#]*:' | head -n 20 |
		while read -r line; do say host.tcp_wrappers "$line"; done
} 2>/dev/null

# The names of PAM's files for sshd: pam.d/sshd, and what that includes.
pam_files() {
	set -- sshd
	seen=' '
	while [ $# -gt 0 ] && [ ${#seen} -lt 1024 ]; do
		name=$1
		shift
		case $seen in *" $name "*) continue ;; esac
		seen="$seen$name "
		[ -r "/etc/pam.d/$name" ] || continue
		echo "$name"
		set -- "$@" $(head -c "$limit" "/etc/pam.d/$name" |
			sed -n -E -e 's/^[[:space:]]*@include[[:space:]]+([[:alnum:]._-]+).*/\1/p' \
				-e 's/^[[:space:]]*-?[[:alpha:]]+[[:space:]]+(include|substack)[[:space:]]+([[:alnum:]._-]+).*/\2/p')
	done
}

pam() {
	[ -r /etc/pam.d/sshd ] || return
	files=$(pam_files)
	for module in motd lastlog systemd; do
		say "host.pam.$module" ''
		for file in $files; do
			[ "$file" = sshd ] && from= || from=" ($file)"
			head -c "$limit" "/etc/pam.d/$file" | grep -iE "^[[:space:]]*-?session[^#]*pam_$module" | head -n 8 |
				while read -r line; do say "host.pam.$module" "${line%%#*}$from"; done
		done
	done
} 2>/dev/null

name_service() {
	head -c "$limit" /etc/nsswitch.conf | while read -r database sources; do
		case $database in
		passwd: | group:) say "host.nsswitch.${database%:}" "$sources" ;;
		esac
	done
} 2>/dev/null

# As pam_motd has them run, by run-parts; but as this user, and once: nobody knows what else they do.
motd_scripts() {
	[ -d /etc/update-motd.d ] || return
	# By this the watchdog knows that what runs is one of them.
	exec 4</dev/null
	begin host.motd_scripts.time
	seen=0
	for file in /etc/update-motd.d/*; do
		case ${file##*/} in *[!A-Za-z0-9_-]*) continue ;; esac
		[ -f "$file" ] && [ -x "$file" ] || continue
		seen=$((seen + 1))
		[ "$seen" -gt "$scripts_limit" ] && break
		timed "motd $file" "$file"
	done
	finish host.motd_scripts.time
	exec 4<&-
}

system() {
	head -c "$limit" /etc/os-release | while read -r line; do
		case $line in PRETTY_NAME=*) say host.os "${line#PRETTY_NAME=}" ;; esac
	done
}

main() {
	say host.begun yes
	processor processor.before
	find_sshd
	[ -n "$connection" ] && waited
	[ -n "$connection" ] && count_processes
	# The user's shell may have left it open.
	[ -e "/proc/$$/fd/4" ] && exec 4<&-
	watcher=
	if [ -r /proc/self/stat ]; then
		watchdog &
		watcher=$!
	fi
	say host.shell "${SHELL-}"
	# By ForceCommand, or by `command` of the key (sshd(8)).
	[ -n "${SSH_ORIGINAL_COMMAND+set}" ] && say host.forced_command yes || say host.forced_command no
	# What is read comes before what is timed: a name server that is dead may take all the time that there is.
	startup_files
	sshd_settings
	libwrap
	wrappers
	pam
	name_service
	system
	[ -e /etc/ssh/sshrc ] && say host.sshrc yes || say host.sshrc no
	pressure
	read -r load rest </proc/loadavg && say host.load "$load"
	# How often sshd's own group was throttled before this login only a login before it tells.
	quota self before
	[ -n "$listener" ] && quota "$listener"
	# The home may be another host's.
	say host.home.filesystem "$(stat -f -c %T "$HOME" 2>/dev/null)"
	[ -e "$HOME/.ssh/rc" ] && say host.user_rc yes || say host.user_rc no
	keys
	all_times
	processor processor.after
	quotas after
	# It holds standard output, which ends with the last of us.
	[ -z "$watcher" ] || { kill "$watcher" && wait "$watcher"; }
	say host.done yes
}

# What follows the first of several logins.
at_first() {
	say host.begun yes
	find_sshd
	quotas before
}

all_times() {
	# As sshd starts it: a shell that it starts is no other's child.
	unset SHLVL
	if [ -x "${SHELL-}" ]; then
		timed_well host.shell.startup.time "$SHELL" -c : <&3
		timed_well host.shell.bare.time env -i /bin/sh -c :
	fi
	# With a name it asks for all groups of the user, as sshd does.
	timed_well host.id.time id "${LOGNAME:-${USER-}}"
	has getent && timed_well host.getent_passwd.time getent passwd "${LOGNAME:-${USER-}}"
	timed_well host.ls.time ls -ld / /.
	timed_well host.home.time ls -ld "$HOME/." "$HOME/.ssh"
	motd_scripts
	processor processor.after
	quotas after
	client=${SSH_CLIENT%% *}
	has getent && [ -n "$client" ] && timed_well host.getent_hosts.time client_name "$client"
}

exec 3<&0
# In one piece: where standard input is a file, a process of bash that ends beside this one would have it read again from elsewhere.
{
	case ${1-} in
	first) LC_ALL=C at_first ;;
	*) LC_ALL=C main ;;
	esac
	exit 0
} </dev/null 2>/dev/null
