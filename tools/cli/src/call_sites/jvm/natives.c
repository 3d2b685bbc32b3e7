/*
 * The native methods by which Java connects sockets and writes to them.
 *
 * Each gets a function before it that looks at the stack and then calls it. The classes differ from version to version of
 * Java, so there are several functions of each kind, one for each class.
 */
#include <string.h>
#include <sys/uio.h>

#include "agent.h"

enum {
	SLOTS = 4,
	CLASSES_MAX = 3,
};

typedef int32_t write_method(environment, object, object, int64_t, int32_t);
typedef int64_t write_all_method(environment, object, object, int64_t, int32_t);
typedef void old_write_method(environment, object, object, object, int32_t, int32_t);
typedef int32_t connect_method(environment, object, unsigned char, object, object, int32_t);
typedef int32_t path_connect_method(environment, object, object, object);
typedef void old_connect_method(environment, object, object, int32_t, int32_t);

/* Java's own functions, one for each class. */
static void *writes[SLOTS], *writes_all[SLOTS], *old_writes[SLOTS];
static void *connects[SLOTS], *path_connects[SLOTS], *old_connects[SLOTS];

/* The descriptor that a java.io.FileDescriptor holds; -1 if it holds none. */
static int descriptor_of(environment java, object holder)
{
	/* Of the one class there is, so that every thread finds the same. */
	static field_id known;
	field_id field = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (!holder)
		return -1;
	if (!field) {
		field = FIELD_OF(java, CLASS_OF(java, holder), "fd", "I");
		if (!field) {
			CLEAR_EXCEPTION(java);
			return -1;
		}
		__atomic_store_n(&known, field, __ATOMIC_RELAXED);
	}
	return GET_INT(java, holder, field);
}

/* The same of a socket before Java 13, which has its descriptor in a field. */
static int descriptor_in(environment java, object socket)
{
	field_id field = FIELD_OF(java, CLASS_OF(java, socket), "fd", "Ljava/io/FileDescriptor;");

	if (!field) {
		CLEAR_EXCEPTION(java);
		return -1;
	}
	return descriptor_of(java, GET_OBJECT(java, socket, field));
}

/* The program writes several pieces: the first that is not empty is looked at. */
static void writing_all(environment java, int descriptor, const struct iovec *parts, int32_t count)
{
	while (count > 0 && parts->iov_len == 0)
		parts++, count--;
	if (count > 0)
		writing(java, descriptor, parts->iov_base, (int64_t)parts->iov_len);
}

/* The program writes a part of an array. */
static void writing_array(environment java, int descriptor, object array, int32_t from, int32_t size)
{
	unsigned char bytes[LOOK_BYTES] = {0};

	if (!array || size <= 0)
		return;
	GET_BYTES(java, array, from, size < LOOK_BYTES ? size : LOOK_BYTES, bytes);
	if (EXCEPTION_IS_THERE(java)) /* the method itself will throw it */
		CLEAR_EXCEPTION(java);
	else
		writing(java, descriptor, bytes, size);
}

#define EACH_SLOT(define) define(0) define(1) define(2) define(3)

#define DEFINE_WRITE(slot)                                                                                              \
	static int32_t write_##slot(environment java, object class, object holder, int64_t bytes, int32_t size)         \
	{                                                                                                               \
		writing(java, descriptor_of(java, holder), (unsigned char *)(uintptr_t)bytes, size);                    \
		return ((write_method *)writes[slot])(java, class, holder, bytes, size);                                \
	}
EACH_SLOT(DEFINE_WRITE)

#define DEFINE_WRITE_ALL(slot)                                                                                          \
	static int64_t write_all_##slot(environment java, object class, object holder, int64_t parts, int32_t count)    \
	{                                                                                                               \
		writing_all(java, descriptor_of(java, holder), (struct iovec *)(uintptr_t)parts, count);                \
		return ((write_all_method *)writes_all[slot])(java, class, holder, parts, count);                       \
	}
EACH_SLOT(DEFINE_WRITE_ALL)

#define DEFINE_OLD_WRITE(slot)                                                                                          \
	static void old_write_##slot(environment java, object self, object holder, object bytes, int32_t from,          \
				     int32_t size)                                                                      \
	{                                                                                                               \
		writing_array(java, descriptor_of(java, holder), bytes, from, size);                                    \
		((old_write_method *)old_writes[slot])(java, self, holder, bytes, from, size);                          \
	}
EACH_SLOT(DEFINE_OLD_WRITE)

#define DEFINE_CONNECT(slot)                                                                                            \
	static int32_t connect_##slot(environment java, object class, unsigned char is_v6, object holder, object host,  \
				      int32_t port)                                                                     \
	{                                                                                                               \
		connecting(java, descriptor_of(java, holder));                                                          \
		return ((connect_method *)connects[slot])(java, class, is_v6, holder, host, port);                      \
	}
EACH_SLOT(DEFINE_CONNECT)

#define DEFINE_PATH_CONNECT(slot)                                                                                       \
	static int32_t path_connect_##slot(environment java, object class, object holder, object path)                  \
	{                                                                                                               \
		connecting(java, descriptor_of(java, holder));                                                          \
		return ((path_connect_method *)path_connects[slot])(java, class, holder, path);                         \
	}
EACH_SLOT(DEFINE_PATH_CONNECT)

#define DEFINE_OLD_CONNECT(slot)                                                                                        \
	static void old_connect_##slot(environment java, object self, object host, int32_t port, int32_t patience)      \
	{                                                                                                               \
		connecting(java, descriptor_in(java, self));                                                            \
		((old_connect_method *)old_connects[slot])(java, self, host, port, patience);                           \
	}
EACH_SLOT(DEFINE_OLD_CONNECT)

#define TABLE(name) {(void *)name##_0, (void *)name##_1, (void *)name##_2, (void *)name##_3}
#define DISPATCHERS {"Lsun/nio/ch/SocketDispatcher;", "Lsun/nio/ch/FileDispatcherImpl;", "Lsun/nio/ch/UnixDispatcher;"}

static const struct {
	const char *classes[CLASSES_MAX];
	const char *name, *signature;
	void **originals;
	void *ours[SLOTS];
} kinds[] = {
	{DISPATCHERS, "write0", "(Ljava/io/FileDescriptor;JI)I", writes, TABLE(write)},
	{DISPATCHERS, "writev0", "(Ljava/io/FileDescriptor;JI)J", writes_all, TABLE(write_all)},
	{{"Ljava/net/SocketOutputStream;"},
	 "socketWrite0", "(Ljava/io/FileDescriptor;[BII)V", old_writes, TABLE(old_write)},
	{{"Lsun/nio/ch/Net;"},
	 "connect0", "(ZLjava/io/FileDescriptor;Ljava/net/InetAddress;I)I", connects, TABLE(connect)},
	{{"Lsun/nio/ch/UnixDomainSockets;"},
	 "connect0", "(Ljava/io/FileDescriptor;[B)I", path_connects, TABLE(path_connect)},
	{{"Ljava/net/PlainSocketImpl;"},
	 "socketConnect", "(Ljava/net/InetAddress;II)V", old_connects, TABLE(old_connect)},
};

void *instead_of(const char *class, const char *name, const char *signature, void *address)
{
	for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
		if (strcmp(name, kinds[kind].name) != 0 || strcmp(signature, kinds[kind].signature) != 0)
			continue;
		for (int place = 0; place < CLASSES_MAX && kinds[kind].classes[place]; place++) {
			if (strcmp(class, kinds[kind].classes[place]) != 0)
				continue;
			for (int slot = 0; slot < SLOTS; slot++) {
				void **original = &kinds[kind].originals[slot];

				if (*original && *original != address)
					continue;
				*original = address;
				return kinds[kind].ours[slot];
			}
		}
	}
	return NULL;
}
