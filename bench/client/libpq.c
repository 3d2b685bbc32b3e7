/*
 * The same work as edge/client/examples/measure.rs, by libpq. bench/run client builds and runs it.
 *
 *   libpq pipeline ROUNDS    100 x {insert, 4 updates} and COMMIT in one pipeline
 *   libpq select ROUNDS      1,000 selects of one row, one after the other
 *   libpq lobs ROUNDS        every bytea of the table large, a row at a time
 *
 * Prints a line per round: its seconds, the client's CPU in microseconds per statement, and the rows that the server
 * counted. Parameters are binary integers and text, as the Rust client sends them; statements are prepared before.
 * The pipeline is written without blocking and read meanwhile, as the manual asks for.
 */
#include <arpa/inet.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SELECTS = 1000, WARM_ROUNDS = 2 };

static void die(PGconn *connection, const char *what) {
    fprintf(stderr, "libpq: %s: %s", what, PQerrorMessage(connection));
    exit(1);
}

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void run(PGconn *connection, const char *text) {
    PGresult *result = PQexec(connection, text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) die(connection, text);
    PQclear(result);
}

static void prepare(PGconn *connection, const char *name, const char *text) {
    PGresult *result = PQprepare(connection, name, text, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) die(connection, text);
    PQclear(result);
}

static void must(PGconn *connection, int sent) {
    if (!sent) die(connection, "send");
}

/* Takes the results that are there. */
static void take(PGconn *connection, int *waiting, uint64_t *rows) {
    while (*waiting > 0 && !PQisBusy(connection)) {
        PGresult *result = PQgetResult(connection);
        if (!result) continue; /* the end of one query's results */
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_PIPELINE_SYNC)
            *waiting = 0;
        else if (status == PGRES_COMMAND_OK)
            *rows += strtoull(PQcmdTuples(result), NULL, 10);
        else
            die(connection, "result");
        PQclear(result);
    }
}

static uint64_t pipeline(PGconn *connection) {
    static const char *text = "forty characters of text, more or less....";
    uint64_t rows = 0;
    int waiting = 502;
    PQsetnonblocking(connection, 1);
    PQenterPipelineMode(connection);
    must(connection, PQsendQueryPrepared(connection, "begin", 0, NULL, NULL, NULL, 1));
    for (uint32_t id = 0; id < 100; id++) {
        uint32_t key = htonl(id), zero = 0;
        const char *inserted[] = {(char *)&key, (char *)&zero, text};
        const int lengths[] = {4, 4, (int)strlen(text)}, formats[] = {1, 1, 0};
        must(connection, PQsendQueryPrepared(connection, "insert", 3, inserted, lengths, formats, 1));
        for (uint32_t step = 0; step < 4; step++) {
            uint32_t added = htonl(step);
            const char *updated[] = {(char *)&key, (char *)&added};
            must(connection, PQsendQueryPrepared(connection, "update", 2, updated, lengths, formats, 1));
        }
    }
    must(connection, PQsendQueryPrepared(connection, "commit", 0, NULL, NULL, NULL, 1));
    PQpipelineSync(connection);
    int unsent = PQflush(connection);
    while (waiting > 0) {
        take(connection, &waiting, &rows);
        if (waiting == 0) break;
        struct pollfd socket = {PQsocket(connection), POLLIN | (unsent ? POLLOUT : 0), 0};
        poll(&socket, 1, -1);
        if (!PQconsumeInput(connection)) die(connection, "read");
        if (unsent) unsent = PQflush(connection);
    }
    PQexitPipelineMode(connection);
    PQsetnonblocking(connection, 0);
    return rows;
}

static uint64_t selects(PGconn *connection) {
    uint64_t found = 0;
    for (uint32_t id = 0; id < SELECTS; id++) {
        uint32_t key = htonl(id);
        const char *values[] = {(char *)&key};
        const int lengths[] = {4}, formats[] = {1};
        PGresult *result = PQexecPrepared(connection, "select", 1, values, lengths, formats, 1);
        if (PQresultStatus(result) != PGRES_TUPLES_OK) die(connection, "select");
        found += PQntuples(result) == 1 && PQgetvalue(result, 0, 0)[0];
        PQclear(result);
    }
    return found;
}

/* The bytes of every value; how many values goes into `statements`. */
static uint64_t values_of_large(PGconn *connection, int *statements) {
    PGresult *ids = PQexec(connection, "SELECT id FROM large ORDER BY id");
    if (PQresultStatus(ids) != PGRES_TUPLES_OK) die(connection, "select ids");
    uint64_t bytes = 0;
    *statements = PQntuples(ids);
    for (int row = 0; row < *statements; row++) {
        const char *values[] = {PQgetvalue(ids, row, 0)};
        const char *text = "SELECT body FROM large WHERE id = $1";
        PGresult *result = PQexecParams(connection, text, 1, NULL, values, NULL, NULL, 1);
        if (PQresultStatus(result) != PGRES_TUPLES_OK) die(connection, "select body");
        bytes += (uint64_t)PQgetlength(result, 0, 0);
        PQclear(result);
    }
    PQclear(ids);
    return bytes;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: libpq pipeline|select|lobs ROUNDS\n");
        return 2;
    }
    int is_pipeline = strcmp(arguments[1], "pipeline") == 0, rounds = atoi(arguments[2]);
    int is_lobs = strcmp(arguments[1], "lobs") == 0;
    PGconn *connection = PQconnectdb("");
    if (PQstatus(connection) != CONNECTION_OK) die(connection, "connect");
    run(connection, "CREATE TEMP TABLE measured (id int PRIMARY KEY, a int, b text)");
    prepare(connection, "begin", "BEGIN");
    prepare(connection, "commit", "COMMIT");
    prepare(connection, "insert", "INSERT INTO measured (id, a, b) VALUES ($1, $2, $3)");
    prepare(connection, "update", "UPDATE measured SET a = a + $2 WHERE id = $1");
    if (!is_lobs) prepare(connection, "select", "SELECT b FROM known WHERE id = $1");
    for (int round = 0; round < rounds + WARM_ROUNDS; round++) {
        run(connection, "TRUNCATE measured");
        double started = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
        int statements = is_pipeline ? 502 : SELECTS;
        uint64_t rows = is_lobs       ? values_of_large(connection, &statements)
                        : is_pipeline ? pipeline(connection)
                                      : selects(connection);
        double elapsed = seconds(CLOCK_MONOTONIC) - started;
        double spent = (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) * 1e6 / statements;
        if (round >= WARM_ROUNDS) printf("%.7f %.4f %llu\n", elapsed, spent, (unsigned long long)rows);
    }
    PQfinish(connection);
    return 0;
}
