/*
 * What the agent uses of the JVM: functions of the tool interface (JVMTI) and of JNI.
 *
 * Both interfaces are tables of functions. Their numbers are those of the published specifications, "JVM Tool Interface" and
 * "Java Native Interface", and never change. So the agent is built without a JDK.
 */
#ifndef JAVA_H
#define JAVA_H

#include <stdint.h>

typedef void *object;
typedef void *method_id;
typedef void *field_id;
typedef void ***environment;

struct stack_frame {
	method_id method;
	int64_t place;
};

struct line_entry {
	int64_t from;
	int32_t line;
};

/* The tool interface: one table for all threads. A function returns 0, or an error. */
extern environment tools;

#define TOOL(number, ...) ((int32_t (*)(environment, __VA_ARGS__))(*tools)[(number) - 1])
#define SET_EVENT_MODE TOOL(2, int32_t mode, int32_t event, object thread, ...)
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

enum {
	TOOLS_VERSION = 0x30010000, /* 1.0, which every later one is as well */
	/* The number of `GetEnv` in the table of the JVM. */
	GET_ENVIRONMENT = 6,
	EVENT_FIRST = 50,
	EVENT_BEGIN = 50,
	EVENT_DEATH = 51,
	EVENT_BIND = 67,
	/* Bits of the capabilities, of which there are so many words. */
	CAPABILITY_WORDS = 4,
	CAN_GET_SOURCE_FILE = 11,
	CAN_GET_LINES = 12,
	CAN_SEE_BINDS = 30,
};

/* JNI: one table for each thread. */
#define JAVA(result, number, ...) ((result (*)(environment, __VA_ARGS__))(*java)[number])
#define CLEAR_EXCEPTION(java) ((void (*)(environment))(*(java))[17])(java)
#define PUSH_FRAME JAVA(int32_t, 19, int32_t)
#define POP_FRAME JAVA(object, 20, object)
#define CLASS_OF JAVA(object, 31, object)
#define METHOD_OF JAVA(method_id, 33, object, const char *, const char *)
#define CALL_METHOD JAVA(object, 36, object, method_id, const void *)
#define FIELD_OF JAVA(field_id, 94, object, const char *, const char *)
#define GET_OBJECT JAVA(object, 95, object, field_id)
#define GET_INT JAVA(int32_t, 100, object, field_id)
#define GET_TEXT JAVA(const char *, 169, object, unsigned char *)
#define RELEASE_TEXT JAVA(void, 170, object, const char *)
#define GET_BYTES JAVA(void, 200, object, int32_t, int32_t, unsigned char *)
#define EXCEPTION_IS_THERE(java) ((unsigned char (*)(environment))(*(java))[228])(java)

#endif
