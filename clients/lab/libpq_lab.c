/* The lab's work in libpq: statement by statement, and in its pipeline mode. Build: cc -O2 libpq_lab.c -lpq */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SELECT_ROW, INSERT_ORDER, UPDATE_STOCK, STATEMENTS };
enum { TOLD_MAX = 64, VALUES_MAX = 8 };
static const char *const NAMES[STATEMENTS] = {"select_row", "insert_order", "update_stock"};
static const char *const TEXTS[STATEMENTS] = {
    "SELECT id, note FROM items WHERE id = $1",
    "INSERT INTO orders VALUES ($1, 0)",
    "UPDATE stock SET quantity = quantity + 1 WHERE id = $1",
};

/* A statement that the lab tells; only those with values are prepared, under a name. */
struct told {
    char *text, name[8];
    int count;
    const char *values[VALUES_MAX];
};

static struct told told[TOLD_MAX];
static int told_count;
static PGconn *connection;
static int is_pipeline, session;
static long sent, rows;

static void fail(const char *what) {
    fprintf(stderr, "libpq_lab: %s: %s", what, PQerrorMessage(connection));
    exit(1);
}

static long long now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Books a result; anything but success ends the program. */
static void take(PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK)
        rows += PQntuples(result);
    else if (status != PGRES_COMMAND_OK && status != PGRES_PIPELINE_SYNC)
        fail("result");
    PQclear(result);
}

static void prepared(const char *name, int count, const char *const *values) {
    if (!is_pipeline) {
        take(PQexecPrepared(connection, name, count, values, NULL, NULL, 0));
        return;
    }
    if (!PQsendQueryPrepared(connection, name, count, values, NULL, NULL, 0))
        fail("send");
    sent++;
}

static void execute(int statement, int key) {
    char text[16];
    const char *values[1] = {text};
    snprintf(text, sizeof text, "%d", key);
    prepared(NAMES[statement], 1, values);
}

static void plain(const char *text) {
    if (!is_pipeline) {
        take(PQexec(connection, text));
        return;
    }
    if (!PQsendQueryParams(connection, text, 0, NULL, NULL, NULL, NULL, 0))
        fail("send");
    sent++;
}

/* Ends the pipeline's trip: a Sync, and all results. */
static void finish(void) {
    PGresult *result;
    if (!is_pipeline)
        return;
    if (!PQpipelineSync(connection))
        fail("sync");
    for (; sent > 0; sent--)
        while ((result = PQgetResult(connection)) != NULL)
            take(result);
    take(PQgetResult(connection));
}

/* Reads what the lab tells first: a statement a line, its values behind tabs, up to an empty line. */
static void listen(void) {
    char *line = NULL;
    size_t size = 0;
    for (; getline(&line, &size, stdin) > 1; told_count++, line = NULL, size = 0) {
        if (told_count == TOLD_MAX)
            fail("too many statements");
        struct told *this = &told[told_count];
        line[strcspn(line, "\n")] = 0;
        this->text = strtok(line, "\t");
        for (char *value; (value = strtok(NULL, "\t")) != NULL; this->values[this->count++] = value)
            if (this->count == VALUES_MAX)
                fail("too many values");
        if (this->count == 0)
            continue;
        int first = 0;
        while (strcmp(told[first].text, this->text) != 0)
            first++;
        snprintf(this->name, sizeof this->name, "s%d", first);
        if (first == told_count)
            take(PQprepare(connection, this->name, this->text, 0, NULL));
    }
    free(line);
}

static void play(int count) {
    for (int turn = 0; turn < count; turn++) {
        for (struct told *this = told; this < told + told_count; this++) {
            if (this->count > 0)
                prepared(this->name, this->count, this->values);
            else
                plain(this->text);
        }
        finish();
    }
}

static void round_of(int is_read, int count, int turn) {
    if (is_read) {
        for (int n = 0; n < count; n++)
            execute(SELECT_ROW, 1 + (int)((n * 7919L + session * 131L) % 10000));
    } else {
        plain("BEGIN");
        for (int unit = 0; unit < count; unit++) {
            execute(INSERT_ORDER, session * 1000000 + turn * count + unit);
            for (int line = 0; line < 4; line++)
                execute(UPDATE_STOCK, session * 100 + 1 + (unit * 4 + line) % 100);
        }
        plain("COMMIT");
    }
    finish();
}

int main(int argc, char **argv) {
    if (argc != 5)
        return fprintf(stderr, "usage: %s pipeline-read|pipeline-dml|pipeline-oltp blocking|pipeline N SESSION\n", argv[0]), 2;
    int is_read = strcmp(argv[1], "pipeline-read") == 0, is_told = strcmp(argv[1], "pipeline-oltp") == 0;
    int count = atoi(argv[3]);
    session = atoi(argv[4]);
    connection = PQconnectdb("");
    if (PQstatus(connection) != CONNECTION_OK)
        fail("connect");
    if (is_told)
        listen();
    for (int statement = is_read ? 0 : 1; !is_told && statement < (is_read ? 1 : STATEMENTS); statement++)
        take(PQprepare(connection, NAMES[statement], TEXTS[statement], 0, NULL));
    is_pipeline = strcmp(argv[2], "pipeline") == 0;
    if (is_pipeline && !PQenterPipelineMode(connection))
        fail("pipeline");
    for (int turn = 0; getchar() != EOF; turn++) {
        long long began = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
        rows = 0;
        if (is_told)
            play(count);
        else
            round_of(is_read, count, turn);
        printf("{\"rows\": %ld, \"ns\": %lld, \"cpu_ns\": %lld}\n", rows, now(CLOCK_MONOTONIC) - began,
               now(CLOCK_PROCESS_CPUTIME_ID) - used);
        fflush(stdout);
    }
    PQfinish(connection);
    return 0;
}
