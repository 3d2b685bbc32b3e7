/*
 * Whose a method is, and its name, file and lines as they are told.
 *
 * Java is asked once for each method that is on the stack of a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

enum {
	/* Methods that are known: what comes later is never named. */
	METHODS_MAX = 500 * 1000,
	PLACES_FIRST = 1024,
	/* References to objects of Java that asking about a method takes. */
	REFERENCES_MAX = 16,
	LOCATION_BYTES_MAX = 4096,
};

/* A table by the methods' addresses; null is a free place. */
static struct method *methods;
static size_t methods_capacity, methods_count;
/* The program's jar, without its directory; null if there is none. */
static char *program_jar;

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

static int starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static int ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Whether a file's name is one of packed classes. */
static int is_packed(const char *file)
{
	return ends_with(file, ".jar") || ends_with(file, ".war");
}

void set_class_path(const char *path)
{
	size_t length = strcspn(path, ":");
	char *first = malloc(length + 1);
	const char *slash;

	if (!first)
		return;
	memcpy(first, path, length);
	first[length] = 0;
	if (is_packed(first)) {
		slash = strrchr(first, '/');
		program_jar = strdup(slash ? slash + 1 : first);
	}
	free(first);
}

/* Calls a method without arguments; null if there is none, or if it fails. */
static object call(environment java, object of, const char *name, const char *signature)
{
	object made = NULL;
	method_id method;

	if (!of)
		return NULL;
	method = METHOD_OF(java, CLASS_OF(java, of), name, signature);
	if (method)
		made = CALL_METHOD(java, of, method, NULL);
	if (EXCEPTION_IS_THERE(java)) {
		CLEAR_EXCEPTION(java);
		return NULL;
	}
	return made;
}

/* Whose the classes are that come from `location`, which is a URL. */
static enum origin origin_at(const char *location)
{
	char place[LOCATION_BYTES_MAX];
	size_t length = strlen(location);
	const char *name;

	if (starts_with(location, "jrt:/java.") || starts_with(location, "jrt:/jdk."))
		return NEVER;
	if (starts_with(location, "jrt:") || length >= sizeof place)
		return INSTALLED;
	memcpy(place, location, length + 1);
	/* "jar:nested:/app.jar/!BOOT-INF/classes/!/" is a directory in a jar. */
	if (ends_with(place, "!/"))
		place[length -= 2] = 0;
	if (ends_with(place, "/"))
		place[length -= 1] = 0;
	if (ends_with(place, "-INF/classes"))
		return OWN;
	if (strstr(place, "-INF/lib/"))
		return INSTALLED;
	if (!is_packed(place))
		return OWN;
	name = strrchr(place, '/');
	return program_jar && name && strcmp(name + 1, program_jar) == 0 ? OWN : INSTALLED;
}

static enum origin origin_of(environment java, object class, const char *signature, const char *source)
{
	enum origin origin = INSTALLED;
	object loader = NULL, location;
	const char *text;

	/* What is made while the program runs names no file. */
	if (signature[0] != 'L' || source[0] == '<')
		return NEVER;
	for (size_t place = 0; place < sizeof between / sizeof *between; place++)
		if (starts_with(signature + 1, between[place]))
			return NEVER;
	if (GET_CLASS_LOADER(tools, class, &loader) != 0 || !loader)
		return NEVER;
	location = call(java, class, "getProtectionDomain", "()Ljava/security/ProtectionDomain;");
	location = call(java, location, "getCodeSource", "()Ljava/security/CodeSource;");
	location = call(java, location, "getLocation", "()Ljava/net/URL;");
	location = call(java, location, "toString", "()Ljava/lang/String;");
	text = location ? GET_TEXT(java, location, NULL) : NULL;
	if (text) {
		origin = origin_at(text);
		RELEASE_TEXT(java, location, text);
	} else if (EXCEPTION_IS_THERE(java)) {
		CLEAR_EXCEPTION(java);
	}
	return origin;
}

/* Where the source of a class is, of which Java knows the package and the file's name. Null if memory is short. */
static char *source_path(const char *signature, const char *source)
{
	static const char *const roots[] = {
		"src/main/java/", "src/test/java/", "src/main/kotlin/", "src/test/kotlin/", "src/main/scala/",
		"src/test/scala/", "src/", "",
	};
	const char *last = strrchr(signature, '/');
	int package = last ? (int)(last - signature) : 0; /* with the "/", for the "L" is left out */
	size_t size = strlen(source) + (size_t)package + 32;
	char *path = malloc(size);

	for (size_t place = 0; path && place < sizeof roots / sizeof *roots; place++) {
		snprintf(path, size, "%s%.*s%s", roots[place], package, signature + 1, source);
		if (access(path, F_OK) == 0)
			break;
	}
	return path;
}

/* "Views.orders" of "Lshop/Views;" and "lambda$orders$0". Null if memory is short. */
static char *shown_name(const char *signature, const char *name)
{
	const char *last = strrchr(signature, '/');
	const char *class = last ? last + 1 : signature + 1;
	size_t size = strlen(signature) + strlen(name) + 2;
	char *shown = malloc(size);

	if (starts_with(name, "lambda$")) {
		name += strlen("lambda$");
		if (shown)
			snprintf(shown, size, "%.*s.%.*s", (int)strcspn(class, ";"), class, (int)strcspn(name, "$"), name);
	} else if (shown) {
		snprintf(shown, size, "%.*s.%s", (int)strcspn(class, ";"), class, name);
	}
	return shown;
}

/* Finds out about a method. The mutex is not held, for Java is called. */
static struct method describe(environment java, method_id id)
{
	struct method method = {.id = id, .origin = NEVER};
	char *signature = NULL, *source = NULL, *name = NULL;
	enum origin origin;
	object class = NULL;

	if (PUSH_FRAME(java, REFERENCES_MAX) != 0) {
		CLEAR_EXCEPTION(java);
		return method;
	}
	if (GET_METHOD_CLASS(tools, id, &class) != 0 || GET_CLASS_SIGNATURE(tools, class, &signature, NULL) != 0 ||
	    GET_SOURCE_FILE_NAME(tools, class, &source) != 0)
		goto out;
	origin = origin_of(java, class, signature, source);
	if (origin == NEVER || GET_METHOD_NAME(tools, id, &name, NULL, NULL) != 0 ||
	    GET_LINES(tools, id, &method.line_count, &method.lines) != 0)
		goto out;
	method.file = source_path(signature, source);
	method.name = shown_name(signature, name);
	if (method.file && method.name)
		method.origin = origin;
out:
	DEALLOCATE(signature);
	DEALLOCATE(source);
	DEALLOCATE(name);
	POP_FRAME(java, NULL);
	return method;
}

uint64_t mixed(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

/* The place of a method in a table: its own, or a free one. */
static struct method *method_at(struct method *table, size_t capacity, method_id id)
{
	size_t place = (size_t)mixed(0, (uint64_t)(uintptr_t)id) & (capacity - 1);

	while (table[place].id && table[place].id != id)
		place = (place + 1) & (capacity - 1);
	return &table[place];
}

/* Makes room for one more method; false if there is none. */
static int has_room(void)
{
	size_t capacity = methods_capacity ? 2 * methods_capacity : PLACES_FIRST;
	struct method *table;

	if (methods_count >= METHODS_MAX)
		return 0;
	if (2 * (methods_count + 1) <= methods_capacity)
		return 1;
	table = calloc(capacity, sizeof *table);
	if (!table)
		return 0;
	for (size_t place = 0; place < methods_capacity; place++)
		if (methods[place].id)
			*method_at(table, capacity, methods[place].id) = methods[place];
	free(methods);
	methods = table;
	methods_capacity = capacity;
	return 1;
}

struct method method_of(environment java, method_id id)
{
	struct method found = {.origin = NEVER}, *place;

	if (methods)
		found = *method_at(methods, methods_capacity, id);
	if (found.id || !id || !has_room())
		return found;
	unlock();
	found = describe(java, id);
	lock();
	if (!has_room())
		return found;
	place = method_at(methods, methods_capacity, id);
	/* If another thread was faster, its texts are in use. */
	if (!place->id) {
		*place = found;
		methods_count++;
	}
	return *place;
}

int32_t line_at(const struct method *method, int64_t place)
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
