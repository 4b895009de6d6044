#!/bin/bash
# A worker in shell, to show that nothing is needed but something that listens: socat, or the perl of any Debian.
#
#     jobman task types add checksum --on-port -- bash worker.sh
#     jobman task submit --type checksum --payload hello --results
#
# Without a word it listens at JOBMAN_WORKER_PORT and calls itself for each connection, with that as its input
# and output; as `worker.sh connection` it answers the requests of one.

answer() { # STATUS BODY
    printf 'HTTP/1.1 %s -\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n%s' "$1" "${#2}" "$2"
}

serve_connection() {
    local LC_ALL=C method path line length body
    while IFS=' ' read -r method path _; do
        length=0
        while IFS= read -r line && line=${line%$'\r'} && [ -n "$line" ]; do
            case ${line,,} in content-length:*) length=${line##*[: ]} ;; esac
        done
        case "$method $path" in
            "GET /ping") answer 200 ready ;;
            "POST /execute")
                # The bytes go straight to the program: a shell's variable cannot hold all of them.
                body=$(head -c "$length" | sha256sum) && answer 200 "${body%% *}" || answer 500 "no checksum"
                continue ;;
            *) answer 404 "there is /ping and /execute" ;;
        esac
        head -c "$length" >/dev/null
    done
}

listen() {
    if command -v socat >/dev/null; then
        exec socat "TCP-LISTEN:$1,bind=127.0.0.1,reuseaddr,fork" "EXEC:bash $0 connection"
    fi
    exec perl -MIO::Socket::INET -e '
        $SIG{CHLD} = "IGNORE";
        my $door = IO::Socket::INET->new(LocalAddr => "127.0.0.1:$ARGV[0]", Listen => 16, ReuseAddr => 1) or die $!;
        while (my $peer = $door->accept) {
            next if fork;
            open STDIN, "<&", $peer; open STDOUT, ">&", $peer;
            exec "bash", $ARGV[1], "connection";
        }' "$1" "$0"
}

case ${1:-} in
    connection) serve_connection ;;
    *) listen "${JOBMAN_WORKER_PORT:?says where to listen: add the type with --on-port}" ;;
esac
