/*
 * Tells `onetrip run` which line of a program on the JVM sends each statement.
 *
 * It is an agent of the JVM's tool interface (JVMTI), which the JVM loads as `-agentpath` says. It stands before the native
 * methods by which Java connects sockets and writes to them. Before a write to the gateway it looks at the stack of
 * the thread, and writes as before. So it needs to know no driver, changes no class, and nothing changes between client and
 * database. The lines, and what they mean, are those of onetrip_call_sites.py. A call lasts until the next line writes to the same
 * connection.
 *
 * ONETRIP_CALLS holds the path of the socket; the option is the gateway's port. The tables of functions are used by
 * their published numbers, so that it is built without a JDK. It needs nothing but what every C library has under the
 * same name. Whatever fails here ends the telling, not the program.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	/* Frames of one site, and bytes of its text. */
	FRAMES_MAX = 5,
	FRAME_BYTES_MAX = 200,
	/* Frames that are looked at for one of the program's. */
	DEPTH_MAX = 200,
	/* Sockets by their number. */
	DESCRIPTORS_MAX = 1 << 20,
	/* What is not yet told goes out after so many bytes, or so long after the last time. */
	WAITING_MAX = 16 * 1024,
	QUIET_NS = 50 * 1000 * 1000,
	LINE_BYTES_MAX = 4096,
	/* Native methods of one kind: versions of Java have them in different classes. */
	SLOTS = 4,
};

#define CALL __attribute__((visibility("default")))

/* Functions of the tool interface and of JNI, by their numbers. */
typedef void *object;
typedef void *method_id;
typedef void ***environment;

struct stack_frame {
	method_id method;
	int64_t place;
};

struct line_entry {
	int64_t from;
	int32_t line;
};

#define TOOL(number, ...) ((int (*)(environment, __VA_ARGS__))(*tools)[(number) - 1])
#define SET_EVENT_MODE TOOL(2, int mode, int event, object thread, ...)
#define DEALLOCATE(memory) TOOL(47, unsigned char *)(tools, (unsigned char *)(memory))
#define GET_CLASS_SIGNATURE TOOL(48, object, char **, char **)
#define GET_SOURCE_FILE_NAME TOOL(50, object, char **)
#define GET_CLASS_LOADER TOOL(57, object, object *)
#define GET_METHOD_NAME TOOL(64, method_id, char **, char **, char **)
#define GET_METHOD_CLASS TOOL(65, method_id, object *)
#define GET_LINES TOOL(70, method_id, int32_t *, struct line_entry **)
#define GET_STACK TOOL(104, object, int32_t, int32_t, struct stack_frame *, int32_t *)
#define SET_CALLBACKS TOOL(122, const void *, int32_t)
#define GET_PROPERTY TOOL(131, const char *, char **)
#define ADD_CAPABILITIES TOOL(142, const void *)

#define JAVA(result, number, ...) ((result (*)(environment, __VA_ARGS__))(*java)[number])
#define CLEAR_EXCEPTION(java) ((void (*)(environment))(*java)[17])(java)
#define PUSH_FRAME JAVA(int32_t, 19, int32_t)
#define POP_FRAME JAVA(object, 20, object)
#define CLASS_OF JAVA(object, 31, object)
#define METHOD_OF JAVA(method_id, 33, object, const char *, const char *)
#define CALL_METHOD JAVA(object, 36, object, method_id, const void *)
#define FIELD_OF JAVA(void *, 94, object, const char *, const char *)
#define GET_OBJECT JAVA(object, 95, object, void *)
#define GET_INT JAVA(int32_t, 100, object, void *)
#define GET_TEXT JAVA(const char *, 169, object, unsigned char *)
#define RELEASE_TEXT JAVA(void, 170, object, const char *)
#define GET_BYTES JAVA(void, 200, object, int32_t, int32_t, unsigned char *)
#define EXCEPTION_IS_THERE(java) ((unsigned char (*)(environment))(*java)[228])(java)

enum {
	TOOLS_VERSION = 0x30010000, /* 1.0 */
	GET_ENVIRONMENT = 6,
	EVENT_FIRST = 50,
	EVENT_DEATH = 51,
	EVENT_BIND = 67,
	CAN_GET_SOURCE_FILE = 11,
	CAN_GET_LINES = 12,
	CAN_SEE_BINDS = 30,
};

/* Whose a method is. */
enum origin { NEVER, INSTALLED, OWN };

struct method {
	method_id id;
	enum origin origin;
	/* "src/main/java/shop/Views.java", "Views.orders" */
	char *file, *name;
	int32_t line_count;
	struct line_entry *lines;
};

/* A socket that the program has connected. */
struct connection {
	enum { NONE, CONNECTED, GREETED, OPEN } phase;
	int encrypted_writes;
	uint32_t number;
	int64_t opened;
	/* Site of the connect, then of the call that lasts; -1 if there is none. */
	int32_t site;
	int64_t begun;
};

static environment tools;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static int teller = -1;
static unsigned gateway_port;
static char waiting[WAITING_MAX + 2 * LINE_BYTES_MAX];
static size_t waiting_bytes;
static int64_t told_at;
static struct connection *connections;
static size_t connections_length;
static uint32_t connection_count;
static struct method *methods;
static size_t methods_capacity, methods_count;
static uint64_t *sites;
static size_t sites_capacity, sites_count;
static int32_t *site_numbers;
/* The first place of the class path, if it is a jar: the program's. */
static char *program_jar;

static int64_t now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* --- What is told --- */

static void flush(void)
{
	size_t sent = 0;

	while (teller >= 0 && sent < waiting_bytes) {
		ssize_t size = send(teller, waiting + sent, waiting_bytes - sent, MSG_NOSIGNAL);

		if (size <= 0) {
			close(teller);
			teller = -1;
			break;
		}
		sent += (size_t)size;
	}
	waiting_bytes = 0;
}

static void say(const char *line, size_t length)
{
	if (teller < 0 || length > LINE_BYTES_MAX)
		return;
	memcpy(waiting + waiting_bytes, line, length);
	waiting_bytes += length;
	if (waiting_bytes >= WAITING_MAX)
		flush();
}

static void tell(const char *kind, uint32_t number, int64_t begun, int64_t ended, int32_t site)
{
	char line[128], shown[16] = "-";

	if (site >= 0)
		snprintf(shown, sizeof shown, "%d", site);
	say(line, (size_t)snprintf(line, sizeof line, "%s %u %lld %lld %s\n", kind, number, (long long)begun,
				   (long long)ended, shown));
	if (ended - told_at > QUIET_NS) {
		told_at = ended;
		flush();
	}
}

/* Tells of the call that lasts on a connection. */
static void end_call(struct connection *connection, int64_t ended)
{
	if (connection->phase == OPEN && connection->site >= 0)
		tell("call", connection->number, connection->begun, ended, connection->site);
	connection->site = -1;
}

/* --- Whose a method is --- */

/* The JDK, libraries of languages, and what stands between a program and its driver: never lines of the program. */
static const char *const between[] = {
	"java/", "javax/", "jdk/", "sun/", "com/sun/", "jakarta/", "kotlin/", "kotlinx/", "scala/", "groovy/", "clojure/",
	"org/codehaus/groovy/", "org/apache/groovy/", "org/postgresql/", "com/impossibl/postgres/", "com/mysql/",
	"org/mariadb/", "com/zaxxer/hikari/", "com/mchange/", "org/apache/commons/dbcp", "org/apache/commons/pool",
	"org/apache/tomcat/", "com/alibaba/druid/", "io/agroal/", "org/hibernate/", "org/springframework/",
	"org/apache/ibatis/", "org/mybatis/", "com/baomidou/", "org/jooq/", "org/jdbi/", "io/ebean/",
	"org/eclipse/persistence/", "org/apache/openjpa/", "com/querydsl/", "org/flywaydb/", "liquibase/", "slick/",
	"doobie/", "anorm/", "scalikejdbc/", "org/jetbrains/exposed/", "org/ktorm/", "io/quarkus/", "io/micronaut/",
	"io/vertx/", "io/smallrye/", "com/p6spy/", "net/ttddyy/", "net/bytebuddy/", "io/opentelemetry/", "org/aspectj/",
	"org/jboss/", "reactor/", "io/netty/",
};

static int ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Calls a method without arguments; null if it is not there, or fails. */
static object call(environment java, object of, const char *name, const char *signature)
{
	object made = NULL;

	if (of) {
		method_id method = METHOD_OF(java, CLASS_OF(java, of), name, signature);

		made = method ? CALL_METHOD(java, of, method, NULL) : NULL;
	}
	if (EXCEPTION_IS_THERE(java)) {
		CLEAR_EXCEPTION(java);
		return NULL;
	}
	return made;
}

/* Whose the classes are that come from `location`, which is an URL. */
static enum origin origin_at(const char *location)
{
	char text[1024];
	size_t length = strlen(location);

	if (strncmp(location, "jrt:/java.", 10) == 0 || strncmp(location, "jrt:/jdk.", 9) == 0)
		return NEVER;
	if (length >= sizeof text)
		return INSTALLED;
	memcpy(text, location, length + 1);
	if (length >= 2 && strcmp(text + length - 2, "!/") == 0)
		text[length - 2] = 0;
	if (length >= 3 && text[length - 3] == '/' && text[length - 2] == 0)
		text[length - 3] = 0;
	if (ends_with(text, "-INF/classes"))
		return OWN;
	if (strstr(text, "-INF/lib/"))
		return INSTALLED;
	if (ends_with(text, ".jar") || ends_with(text, ".war")) {
		const char *name = strrchr(text, '/');

		return program_jar && name && strcmp(name + 1, program_jar) == 0 ? OWN : INSTALLED;
	}
	return strncmp(text, "jrt:", 4) == 0 ? INSTALLED : OWN;
}

static enum origin origin_of(environment java, object class, const char *signature, const char *source)
{
	static const char file[] = "()Ljava/net/URL;", domain[] = "()Ljava/security/ProtectionDomain;";
	enum origin origin = INSTALLED;
	object loader = NULL, location;
	const char *text;

	/* What is made while the program runs names no file. */
	if (signature[0] != 'L' || !source || source[0] == '<')
		return NEVER;
	for (size_t place = 0; place < sizeof between / sizeof *between; place++)
		if (strncmp(signature + 1, between[place], strlen(between[place])) == 0)
			return NEVER;
	if (GET_CLASS_LOADER(tools, class, &loader) != 0 || !loader)
		return NEVER;
	location = call(java, class, "getProtectionDomain", domain);
	location = call(java, location, "getCodeSource", "()Ljava/security/CodeSource;");
	location = call(java, location, "getLocation", file);
	location = call(java, location, "toString", "()Ljava/lang/String;");
	text = location ? GET_TEXT(java, location, NULL) : NULL;
	if (text) {
		origin = origin_at(text);
		RELEASE_TEXT(java, location, text);
	}
	return origin;
}

/* Where the source of a class is, of which Java knows the package and the file's name. */
static char *source_path(const char *signature, const char *source)
{
	static const char *const roots[] = {
		"src/main/java/", "src/test/java/", "src/main/kotlin/", "src/test/kotlin/", "src/main/scala/",
		"src/test/scala/", "src/", "",
	};
	const char *last = strrchr(signature, '/');
	int package = last ? (int)(last - signature) : 0; /* with the "/", for that the "L" is left out */
	size_t size = strlen(source) + (size_t)package + 32;
	char *path = malloc(size);

	for (size_t place = 0; path && place < sizeof roots / sizeof *roots; place++) {
		snprintf(path, size, "%s%.*s%s", roots[place], package, signature + 1, source);
		if (access(path, F_OK) == 0)
			break;
	}
	return path;
}

/* "Views.orders" of "Lshop/Views;" and "lambda$orders$0". */
static char *shown_name(const char *signature, const char *name)
{
	const char *last = strrchr(signature, '/');
	const char *class = last ? last + 1 : signature + 1;
	size_t size = strlen(signature) + strlen(name) + 2;
	char *shown = malloc(size);
	int length;

	if (strncmp(name, "lambda$", 7) == 0)
		name += 7, length = (int)strcspn(name, "$");
	else
		length = (int)strlen(name);
	if (shown)
		snprintf(shown, size, "%.*s.%.*s", (int)strcspn(class, ";"), class, length, name);
	return shown;
}

/* Finds out about a method, without the mutex: Java may be called for it. */
static struct method describe(environment java, method_id id)
{
	struct method method = {.id = id, .origin = NEVER};
	char *signature = NULL, *source = NULL, *name = NULL;
	struct line_entry *lines = NULL;
	object class = NULL;

	if (PUSH_FRAME(java, 16) != 0) {
		CLEAR_EXCEPTION(java);
		return method;
	}
	if (GET_METHOD_CLASS(tools, id, &class) != 0 || GET_CLASS_SIGNATURE(tools, class, &signature, NULL) != 0)
		goto out;
	if (GET_SOURCE_FILE_NAME(tools, class, &source) != 0)
		goto out;
	method.origin = origin_of(java, class, signature, source);
	if (method.origin == NEVER)
		goto out;
	if (GET_METHOD_NAME(tools, id, &name, NULL, NULL) != 0 || GET_LINES(tools, id, &method.line_count, &lines) != 0) {
		method.origin = NEVER;
		goto out;
	}
	method.file = source_path(signature, source);
	method.name = shown_name(signature, name);
	method.lines = lines; /* kept, as methods are */
	if (!method.file || !method.name)
		method.origin = NEVER;
out:
	DEALLOCATE(signature);
	DEALLOCATE(source);
	DEALLOCATE(name);
	POP_FRAME(java, NULL);
	return method;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* The place of a method in the table: its own, or a free one. */
static struct method *method_at(struct method *table, size_t capacity, method_id id)
{
	size_t place = mixed(0, (uint64_t)(uintptr_t)id) & (capacity - 1);

	while (table[place].id && table[place].id != id)
		place = (place + 1) & (capacity - 1);
	return &table[place];
}

static void remember(const struct method *method)
{
	if (2 * methods_count >= methods_capacity) {
		size_t capacity = methods_capacity ? 2 * methods_capacity : 1024;
		struct method *table = calloc(capacity, sizeof *table);

		if (!table)
			return;
		for (size_t place = 0; place < methods_capacity; place++)
			if (methods[place].id)
				*method_at(table, capacity, methods[place].id) = methods[place];
		free(methods);
		methods = table;
		methods_capacity = capacity;
	}
	struct method *place = method_at(methods, methods_capacity, method->id);

	methods_count += !place->id;
	*place = *method;
}

static struct method method_of(environment java, method_id id)
{
	struct method found = {0};

	pthread_mutex_lock(&mutex);
	if (methods_capacity)
		found = *method_at(methods, methods_capacity, id);
	pthread_mutex_unlock(&mutex);
	if (found.id)
		return found;
	found = describe(java, id);
	pthread_mutex_lock(&mutex);
	remember(&found);
	pthread_mutex_unlock(&mutex);
	return found;
}

static int32_t line_at(const struct method *method, int64_t place)
{
	int64_t from = -1;
	int32_t line = 0;

	for (int32_t entry = 0; entry < method->line_count; entry++)
		if (method->lines[entry].from <= place && method->lines[entry].from > from) {
			from = method->lines[entry].from;
			line = method->lines[entry].line;
		}
	return line;
}

/* --- Sites --- */

struct own_frame {
	struct method method;
	int32_t line;
};

/* Writes a frame as JSON; returns where it ends. */
static char *quoted(char *to, const struct own_frame *frame)
{
	char text[1024];
	int length = snprintf(text, sizeof text, "%s:%d in %s", frame->method.file, frame->line, frame->method.name);
	const unsigned char *from = (unsigned char *)text;

	if (length >= (int)sizeof text)
		length = sizeof text - 1;
	if (length > FRAME_BYTES_MAX)
		from += length - FRAME_BYTES_MAX;
	while ((*from & 0xc0) == 0x80)
		from++;
	*to++ = '"';
	for (; *from; from++) {
		if (from[0] == 0xed && from[1] >= 0xa0) { /* half of a character, as Java writes rare ones */
			*to++ = '?';
			from += 2;
		} else if (*from < ' ') {
			*to++ = '?';
		} else {
			if (*from == '"' || *from == '\\')
				*to++ = '\\';
			*to++ = (char)*from;
		}
	}
	*to++ = '"';
	return to;
}

/* The number of a site, which is told if it is new; the mutex is held. */
static int32_t site_number(const struct own_frame *frames, int count)
{
	char line[LINE_BYTES_MAX], *end = line;
	uint64_t hash = 1;
	size_t place;

	for (int frame = 0; frame < count; frame++)
		hash = mixed(mixed(hash, (uint64_t)(uintptr_t)frames[frame].method.id), (uint64_t)frames[frame].line);
	hash |= 1; /* 0 is a free place */
	if (2 * sites_count >= sites_capacity) {
		size_t capacity = sites_capacity ? 2 * sites_capacity : 1024;
		uint64_t *hashes = calloc(capacity, sizeof *hashes);
		int32_t *numbers = calloc(capacity, sizeof *numbers);

		if (!hashes || !numbers) {
			free(hashes);
			free(numbers);
			return -1;
		}
		for (size_t old = 0; old < sites_capacity; old++) {
			if (!sites[old])
				continue;
			for (place = sites[old] >> 32 & (capacity - 1); hashes[place];)
				place = (place + 1) & (capacity - 1);
			hashes[place] = sites[old];
			numbers[place] = site_numbers[old];
		}
		free(sites);
		free(site_numbers);
		sites = hashes;
		site_numbers = numbers;
		sites_capacity = capacity;
	}
	for (place = hash >> 32 & (sites_capacity - 1); sites[place]; place = (place + 1) & (sites_capacity - 1))
		if (sites[place] == hash)
			return site_numbers[place];
	sites[place] = hash;
	site_numbers[place] = (int32_t)sites_count++;
	end += snprintf(line, 64, "site %d [", site_numbers[place]);
	for (int frame = 0; frame < count; frame++) {
		if (frame)
			*end++ = ',';
		end = quoted(end, &frames[frame]);
	}
	*end++ = ']';
	*end++ = '\n';
	say(line, (size_t)(end - line));
	return site_numbers[place];
}

/* The site of this thread: the program's own frames where there are any, else those of the libraries it uses. -1 if neither. */
static int32_t site_here(environment java)
{
	struct stack_frame frames[DEPTH_MAX];
	struct own_frame own[FRAMES_MAX], installed[FRAMES_MAX];
	int own_count = 0, installed_count = 0;
	int32_t count = 0, site = -1;

	if (GET_STACK(tools, NULL, 0, DEPTH_MAX, frames, &count) != 0)
		return -1;
	for (int32_t frame = 0; frame < count && own_count < FRAMES_MAX; frame++) {
		struct method method = method_of(java, frames[frame].method);
		struct own_frame here = {method, 0};

		if (method.origin == NEVER)
			continue;
		here.line = line_at(&method, frames[frame].place);
		if (here.line <= 0)
			continue; /* made by the compiler */
		if (method.origin == OWN)
			own[own_count++] = here;
		else if (installed_count < FRAMES_MAX)
			installed[installed_count++] = here;
	}
	pthread_mutex_lock(&mutex);
	if (own_count)
		site = site_number(own, own_count);
	else if (installed_count)
		site = site_number(installed, installed_count);
	pthread_mutex_unlock(&mutex);
	return site;
}

/* --- Sockets --- */

/* The number of a descriptor; -1 if it has none. */
static int descriptor_of(environment java, object descriptor)
{
	static void *field;

	if (!descriptor)
		return -1;
	if (!field)
		field = FIELD_OF(java, CLASS_OF(java, descriptor), "fd", "I");
	if (!field) {
		CLEAR_EXCEPTION(java);
		return -1;
	}
	return GET_INT(java, descriptor, field);
}

static int is_gateway(int descriptor)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un un;
	} peer;
	socklen_t length = sizeof peer;

	if (getpeername(descriptor, &peer.any, &length) != 0)
		return 0;
	switch (peer.any.sa_family) {
	case AF_INET:
		return ntohs(peer.v4.sin_port) == gateway_port;
	case AF_INET6:
		return ntohs(peer.v6.sin6_port) == gateway_port;
	default:
		return peer.any.sa_family == AF_UNIX;
	}
}

/* The program connects a socket. */
static void connecting(environment java, int descriptor)
{
	int64_t begun = now();
	int32_t site;

	if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX || teller < 0)
		return;
	site = site_here(java);
	pthread_mutex_lock(&mutex);
	if ((size_t)descriptor >= connections_length) {
		size_t length = ((size_t)descriptor + 64) * 2;
		struct connection *grown = realloc(connections, length * sizeof *grown);

		if (!grown) {
			pthread_mutex_unlock(&mutex);
			return;
		}
		memset(grown + connections_length, 0, (length - connections_length) * sizeof *grown);
		connections = grown;
		connections_length = length;
	}
	end_call(&connections[descriptor], begun);
	connections[descriptor] = (struct connection){.phase = CONNECTED, .opened = begun, .site = site};
	pthread_mutex_unlock(&mutex);
}

enum {
	/* Of what is written, so many bytes are looked at. */
	LOOK_BYTES = 8,
	/* What asks for encryption, in PostgreSQL: a message of 8 bytes with one of these codes. */
	ASKS_TLS = 80877103,
	ASKS_GSS = 80877104,
	/* Records of TLS: of its handshake, and encrypted ones. */
	TLS_CHANGE = 0x14,
	TLS_HANDSHAKE = 0x16,
	TLS_DATA = 0x17,
	/* Of encrypted writes, the first or the second is the startup packet, as TLS 1.2 and 1.3 have it. */
	STARTUP_WRITES_MAX = 2,
};

static uint32_t number_at(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* What a write does for a connection that is not open yet. It is open at the first write after that of the startup packet:
 * that is answered then, so that the gateway has taken it between then and the connect. */
static void advance(struct connection *connection, const unsigned char *bytes, int64_t size)
{
	uint32_t code = size == LOOK_BYTES && number_at(bytes) == LOOK_BYTES ? number_at(bytes + 4) : 0;
	int is_record = size >= 3 && bytes[1] == 3 && bytes[2] <= 4;

	if (code == ASKS_TLS || code == ASKS_GSS)
		return;
	if (is_record && (bytes[0] == TLS_CHANGE || bytes[0] == TLS_HANDSHAKE))
		return;
	if (is_record && bytes[0] == TLS_DATA && connection->encrypted_writes < STARTUP_WRITES_MAX) {
		connection->encrypted_writes++;
		connection->phase = GREETED;
		return;
	}
	connection->phase = connection->phase == CONNECTED ? GREETED : OPEN;
}

/* The program writes to a descriptor; `bytes` are the first ones. */
static void writing(environment java, int descriptor, const unsigned char *bytes, int64_t size)
{
	int64_t begun = now();
	int32_t site;
	struct connection *connection = NULL;
	int is_open = 0;

	pthread_mutex_lock(&mutex);
	if (teller >= 0 && descriptor >= 0 && (size_t)descriptor < connections_length && size > 0)
		connection = &connections[descriptor];
	if (connection && connection->phase == CONNECTED && !is_gateway(descriptor))
		connection->phase = NONE;
	if (connection && (connection->phase == CONNECTED || connection->phase == GREETED)) {
		advance(connection, bytes, size);
		if (connection->phase == OPEN) {
			connection->number = connection_count++;
			tell("open", connection->number, connection->opened, begun, connection->site);
			connection->site = -1;
		}
	}
	is_open = connection && connection->phase == OPEN;
	pthread_mutex_unlock(&mutex);
	if (!is_open)
		return;
	site = site_here(java);
	pthread_mutex_lock(&mutex);
	connection = &connections[descriptor];
	if (connection->phase == OPEN && connection->site != site) {
		end_call(connection, begun);
		connection->begun = begun;
		connection->site = site;
	}
	pthread_mutex_unlock(&mutex);
}

/* --- Native methods of Java --- */

typedef int32_t write_method(environment, object, object, int64_t, int32_t);
typedef int64_t write_all_method(environment, object, object, int64_t, int32_t);
typedef void old_write_method(environment, object, object, object, int32_t, int32_t);
typedef int32_t connect_method(environment, object, unsigned char, object, object, int32_t);
typedef int32_t connect_path_method(environment, object, object, object);
typedef void old_connect_method(environment, object, object, int32_t, int32_t);

static write_method *writes[SLOTS];
static write_all_method *writes_all[SLOTS];
static old_write_method *old_writes[SLOTS];
static connect_method *connects[SLOTS];
static connect_path_method *path_connects[SLOTS];
static old_connect_method *old_connects[SLOTS];

/* The program writes several pieces: the first that is not empty is looked at. */
static void writing_all(environment java, int descriptor, const struct iovec *parts, int32_t count)
{
	while (count > 1 && parts->iov_len == 0)
		parts++, count--;
	if (count > 0)
		writing(java, descriptor, parts->iov_base, (int64_t)parts->iov_len);
}

/* The program writes a part of an array. */
static void writing_array(environment java, int descriptor, object array, int32_t from, int32_t size)
{
	unsigned char bytes[LOOK_BYTES] = {0};

	GET_BYTES(java, array, from, size < LOOK_BYTES ? size : LOOK_BYTES, bytes);
	if (EXCEPTION_IS_THERE(java)) /* the method itself will throw it */
		CLEAR_EXCEPTION(java);
	else
		writing(java, descriptor, bytes, size);
}

/* One function for each slot. */
#define EACH_SLOT(define) define(0) define(1) define(2) define(3)

#define DEFINE_WRITE(slot)                                                                                              \
	static int32_t write_##slot(environment java, object class, object descriptor, int64_t bytes, int32_t size)     \
	{                                                                                                               \
		writing(java, descriptor_of(java, descriptor), (unsigned char *)(uintptr_t)bytes, size);                \
		return writes[slot](java, class, descriptor, bytes, size);                                              \
	}
EACH_SLOT(DEFINE_WRITE)

#define DEFINE_WRITE_ALL(slot)                                                                                          \
	static int64_t write_all_##slot(environment java, object class, object descriptor, int64_t parts, int32_t count) \
	{                                                                                                               \
		writing_all(java, descriptor_of(java, descriptor), (struct iovec *)(uintptr_t)parts, count);            \
		return writes_all[slot](java, class, descriptor, parts, count);                                         \
	}
EACH_SLOT(DEFINE_WRITE_ALL)

#define DEFINE_OLD_WRITE(slot)                                                                                          \
	static void old_write_##slot(environment java, object self, object descriptor, object bytes, int32_t from,      \
				     int32_t size)                                                                      \
	{                                                                                                               \
		writing_array(java, descriptor_of(java, descriptor), bytes, from, size);                                \
		old_writes[slot](java, self, descriptor, bytes, from, size);                                            \
	}
EACH_SLOT(DEFINE_OLD_WRITE)

#define DEFINE_CONNECT(slot)                                                                                            \
	static int32_t connect_##slot(environment java, object class, unsigned char is_v6, object descriptor,           \
				      object host, int32_t port)                                                        \
	{                                                                                                               \
		connecting(java, descriptor_of(java, descriptor));                                                      \
		return connects[slot](java, class, is_v6, descriptor, host, port);                                      \
	}
EACH_SLOT(DEFINE_CONNECT)

#define DEFINE_PATH_CONNECT(slot)                                                                                       \
	static int32_t path_connect_##slot(environment java, object class, object descriptor, object path)              \
	{                                                                                                               \
		connecting(java, descriptor_of(java, descriptor));                                                      \
		return path_connects[slot](java, class, descriptor, path);                                              \
	}
EACH_SLOT(DEFINE_PATH_CONNECT)

/* Of Java before 13: the socket has the descriptor. */
static int descriptor_in(environment java, object socket)
{
	void *field = FIELD_OF(java, CLASS_OF(java, socket), "fd", "Ljava/io/FileDescriptor;");

	if (!field) {
		CLEAR_EXCEPTION(java);
		return -1;
	}
	return descriptor_of(java, GET_OBJECT(java, socket, field));
}

#define DEFINE_OLD_CONNECT(slot)                                                                                        \
	static void old_connect_##slot(environment java, object self, object host, int32_t port, int32_t patience)      \
	{                                                                                                               \
		connecting(java, descriptor_in(java, self));                                                            \
		old_connects[slot](java, self, host, port, patience);                                                   \
	}
EACH_SLOT(DEFINE_OLD_CONNECT)

#define TABLE(name) {(void *)name##_0, (void *)name##_1, (void *)name##_2, (void *)name##_3}

/* The methods that are stood before, and their kinds. */
static const struct {
	const char *classes[3];
	const char *name, *signature;
	void **originals;
	void *ours[SLOTS];
} kinds[] = {
	{{"Lsun/nio/ch/SocketDispatcher;", "Lsun/nio/ch/FileDispatcherImpl;", "Lsun/nio/ch/UnixDispatcher;"},
	 "write0", "(Ljava/io/FileDescriptor;JI)I", (void **)writes, TABLE(write)},
	{{"Lsun/nio/ch/SocketDispatcher;", "Lsun/nio/ch/FileDispatcherImpl;", "Lsun/nio/ch/UnixDispatcher;"},
	 "writev0", "(Ljava/io/FileDescriptor;JI)J", (void **)writes_all, TABLE(write_all)},
	{{"Ljava/net/SocketOutputStream;"},
	 "socketWrite0", "(Ljava/io/FileDescriptor;[BII)V", (void **)old_writes, TABLE(old_write)},
	{{"Lsun/nio/ch/Net;"},
	 "connect0", "(ZLjava/io/FileDescriptor;Ljava/net/InetAddress;I)I", (void **)connects, TABLE(connect)},
	{{"Lsun/nio/ch/UnixDomainSockets;"},
	 "connect0", "(Ljava/io/FileDescriptor;[B)I", (void **)path_connects, TABLE(path_connect)},
	{{"Ljava/net/PlainSocketImpl;"},
	 "socketConnect", "(Ljava/net/InetAddress;II)V", (void **)old_connects, TABLE(old_connect)},
};

/* The function to be called instead of a native method's; null if that is none of ours. */
static void *instead_of(const char *class, const char *name, const char *signature, void *address)
{
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		if (strcmp(name, kinds[kind].name) != 0 || strcmp(signature, kinds[kind].signature) != 0)
			continue;
		for (int place = 0; place < 3 && kinds[kind].classes[place]; place++) {
			if (strcmp(class, kinds[kind].classes[place]) != 0)
				continue;
			for (int slot = 0; slot < SLOTS; slot++) {
				if (kinds[kind].originals[slot] && kinds[kind].originals[slot] != address)
					continue;
				kinds[kind].originals[slot] = address;
				return kinds[kind].ours[slot];
			}
		}
	}
	return NULL;
}

/* Java is about to use a native method for the first time. */
static void binding(environment env, environment java, object thread, method_id method, void *address, void **instead)
{
	char *name = NULL, *signature = NULL, *class_signature = NULL;
	object class = NULL;
	void *ours;

	(void)env, (void)java, (void)thread;
	if (GET_METHOD_NAME(tools, method, &name, &signature, NULL) != 0)
		return;
	/* Most are looked at no further. */
	if (strncmp(name, "write", 5) == 0 || strncmp(name, "connect", 7) == 0 || strncmp(name, "socket", 6) == 0) {
		if (GET_METHOD_CLASS(tools, method, &class) == 0 &&
		    GET_CLASS_SIGNATURE(tools, class, &class_signature, NULL) == 0) {
			pthread_mutex_lock(&mutex);
			ours = instead_of(class_signature, name, signature, address);
			pthread_mutex_unlock(&mutex);
			if (ours)
				*instead = ours;
		}
	}
	DEALLOCATE(name);
	DEALLOCATE(signature);
	DEALLOCATE(class_signature);
}

/* --- The agent's life --- */

static void machine_begun(environment env, environment java, object thread)
{
	char *path = NULL;

	(void)env, (void)java, (void)thread;
	if (GET_PROPERTY(tools, "java.class.path", &path) != 0 || !path)
		return;
	path[strcspn(path, ":")] = 0;
	if (ends_with(path, ".jar") || ends_with(path, ".war")) {
		const char *name = strrchr(path, '/');

		pthread_mutex_lock(&mutex);
		program_jar = strdup(name ? name + 1 : path);
		pthread_mutex_unlock(&mutex);
	}
	DEALLOCATE(path);
}

static void machine_ended(environment env, environment java)
{
	int64_t at = now();

	(void)env, (void)java;
	pthread_mutex_lock(&mutex);
	for (size_t descriptor = 0; descriptor < connections_length; descriptor++)
		end_call(&connections[descriptor], at);
	flush();
	pthread_mutex_unlock(&mutex);
}

static int listener(const char *path)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 1};
	int descriptor;

	if (!path || strlen(path) >= sizeof place.sun_path)
		return -1;
	strcpy(place.sun_path, path);
	descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (descriptor < 0)
		return -1;
	setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	if (connect(descriptor, (struct sockaddr *)&place, sizeof place) != 0) {
		close(descriptor);
		return -1;
	}
	return descriptor;
}

/* Always 0: with anything else the JVM would not start. */
CALL int32_t Agent_OnLoad(void ***machine, char *options, void *reserved)
{
	void *callbacks[EVENT_BIND - EVENT_FIRST + 1] = {0};
	uint32_t wanted[4] = {1u << CAN_GET_SOURCE_FILE | 1u << CAN_GET_LINES | 1u << CAN_SEE_BINDS};
	int32_t (*get)(void *, void **, int32_t) = (int32_t(*)(void *, void **, int32_t))(*machine)[GET_ENVIRONMENT];
	void *got = NULL;
	int descriptor;

	(void)reserved;
	if (tools)
		return 0; /* named twice */
	for (; options && *options >= '0' && *options <= '9'; options++)
		gateway_port = 10 * gateway_port + (unsigned)(*options - '0');
	descriptor = listener(getenv("ONETRIP_CALLS"));
	if (descriptor < 0 || get(machine, &got, TOOLS_VERSION) != 0)
		return 0;
	tools = got;
	callbacks[0] = (void *)machine_begun;
	callbacks[EVENT_DEATH - EVENT_FIRST] = (void *)machine_ended;
	callbacks[EVENT_BIND - EVENT_FIRST] = (void *)binding;
	if (ADD_CAPABILITIES(tools, wanted) != 0 || SET_CALLBACKS(tools, callbacks, sizeof callbacks) != 0)
		return 0;
	teller = descriptor;
	for (size_t place = 0; place < sizeof callbacks / sizeof *callbacks; place++)
		if (callbacks[place])
			SET_EVENT_MODE(tools, 1, EVENT_FIRST + (int)place, NULL);
	return 0;
}
