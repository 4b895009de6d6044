/* A worker in plain C: sockets and nothing else, to show that no library is needed.
 *
 *     cc -O2 -o count-primes worker.c
 *     jobman task types add count-primes -- ./count-primes
 *     jobman task submit --type count-primes --payload 1000000 --results
 *
 * It listens where JOBMAN_WORKER_SOCKET says, has a process for each connection, and answers
 *
 *     GET /ping        200
 *     POST /execute    200 with the number of primes below the number in the body, or 400 with the reason
 *     anything else    404
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST 65536

static long primes_below(long limit)
{
    long count = 0;
    char *composite = calloc(limit > 0 ? limit : 1, 1);

    if (composite == NULL)
        return -1;
    for (long n = 2; n < limit; n++) {
        if (composite[n])
            continue;
        count++;
        for (long multiple = n * n; multiple < limit; multiple += n)
            composite[multiple] = 1;
    }
    free(composite);
    return count;
}

static int send_all(int peer, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t sent = send(peer, text, size, MSG_NOSIGNAL);

        if (sent <= 0)
            return -1;
        text += sent;
        size -= sent;
    }
    return 0;
}

static int answer(int peer, int status, const char *words)
{
    char text[512];
    int size = snprintf(text, sizeof text,
                        "HTTP/1.1 %d %s\r\ncontent-type: text/plain\r\ncontent-length: %zu\r\n\r\n%s",
                        status, status == 200 ? "OK" : "No", strlen(words), words);

    return send_all(peer, text, size);
}

static int execute(int peer, const char *body)
{
    char words[64], *end;
    long limit = strtol(body, &end, 10);

    if (end == body || limit < 0 || limit > 1000000000)
        return answer(peer, 400, "the payload is a number from 0 to 1000000000");
    snprintf(words, sizeof words, "%ld", primes_below(limit));
    return answer(peer, 200, words);
}

/* The value of content-length, or 0. */
static long length_of(const char *head)
{
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, "content-length:", 15) == 0)
            return strtol(line + 17, NULL, 10);
    return 0;
}

/* One request after the other, until the other side hangs up. */
static void serve(int peer)
{
    static char buffer[MOST + 1];
    size_t filled = 0;

    for (;;) {
        char *body;
        size_t whole;
        ssize_t got;

        buffer[filled] = '\0';
        body = strstr(buffer, "\r\n\r\n");
        if (body != NULL) {
            char after;
            int failed;

            body += 4;
            whole = (body - buffer) + length_of(buffer);
            if (whole > MOST)
                return;
            if (filled >= whole) {
                after = buffer[whole];
                buffer[whole] = '\0';
                if (strncmp(buffer, "GET /ping ", 10) == 0)
                    failed = answer(peer, 200, "ready");
                else if (strncmp(buffer, "POST /execute ", 14) == 0)
                    failed = execute(peer, body);
                else
                    failed = answer(peer, 404, "there is /ping and /execute");
                if (failed)
                    return;
                buffer[whole] = after;
                memmove(buffer, buffer + whole, filled - whole);
                filled -= whole;
                continue;
            }
        }
        if (filled == MOST)
            return;
        got = recv(peer, buffer + filled, MOST - filled, 0);
        if (got <= 0)
            return;
        filled += got;
    }
}

int main(void)
{
    const char *path = getenv("JOBMAN_WORKER_SOCKET");
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);

    if (path == NULL || strlen(path) >= sizeof place.sun_path) {
        fprintf(stderr, "JOBMAN_WORKER_SOCKET says where to listen\n");
        return 2;
    }
    signal(SIGCHLD, SIG_IGN); /* nobody waits for those who have served */
    strcpy(place.sun_path, path);
    unlink(path);
    if (bind(listening, (struct sockaddr *)&place, sizeof place) || listen(listening, 16)) {
        perror(path);
        return 1;
    }
    for (;;) {
        int peer = accept(listening, NULL, NULL);

        if (peer < 0 && errno != EINTR)
            return 1;
        if (peer >= 0 && fork() == 0) {
            serve(peer);
            _exit(0);
        }
        if (peer >= 0)
            close(peer);
    }
}
