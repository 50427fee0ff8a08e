# Every target is one line and calls a script; CI runs the same ones.
.PHONY: setup check test demo bench fuzz interop docs wan slow-hosts score-why why-pictures install install-spawn aarch64 tracer-aarch64 clean

setup:   ; scripts/setup.sh all
check:   ; scripts/check.sh
test:    ; scripts/test.sh
demo:    ; scripts/demo.sh
bench:   ; scripts/bench.sh
fuzz:    ; scripts/fuzz.sh
interop: ; scripts/interop.sh
docs:    ; scripts/docs.sh
wan:     ; scripts/wan.sh
slow-hosts: ; scripts/slow_hosts.sh
score-why: ; scripts/score_why.sh
why-pictures: ; scripts/why_pictures.sh
install: ; scripts/install.sh
install-spawn: ; scripts/install_spawn.sh
aarch64: ; scripts/aarch64.sh
tracer-aarch64: ; scripts/tracer_aarch64.sh
clean:   ; scripts/clean.sh
