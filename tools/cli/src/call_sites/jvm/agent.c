/*
 * Tells `onetrip run` which line of a program on the JVM sends each statement.
 *
 * This is an agent of the JVM's tool interface (JVMTI), which the JVM loads as `-agentpath` says. It stands before the native
 * methods by which Java connects sockets and writes to them (natives.c). Before a write to the gateway (connections.c) it
 * looks at the stack of the thread (sites.c, methods.c), and tells the gateway's process (teller.c). So it needs to know no
 * driver and no pool, changes no class, and nothing changes between client and database. The lines, and what they mean, are
 * those of onetrip_call_sites.py.
 *
 * ONETRIP_CALLS holds the path of the socket; the option is the gateway's port. The library needs nothing but what every C
 * library has under the same name, so that it loads into JVMs of any. Whatever fails here ends the telling, not the
 * program.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

environment tools;

/* One C library's mutex may be larger than another's, for which this was compiled. */
static union {
	pthread_mutex_t mutex;
	char room[128];
} guard = {PTHREAD_MUTEX_INITIALIZER};

void lock(void)
{
	pthread_mutex_lock(&guard.mutex);
}

void unlock(void)
{
	pthread_mutex_unlock(&guard.mutex);
}

/* Java is about to use a native method for the first time. */
static void binding(environment env, environment java, object thread, method_id method, void *address, void **instead)
{
	char *name = NULL, *signature = NULL, *class_signature = NULL;
	object class = NULL;
	void *ours = NULL;

	(void)env, (void)java, (void)thread;
	if (GET_METHOD_NAME(tools, method, &name, &signature, NULL) != 0)
		return;
	/* Most are looked at no further. */
	if ((strncmp(name, "write", 5) == 0 || strncmp(name, "connect", 7) == 0 || strncmp(name, "socket", 6) == 0) &&
	    GET_METHOD_CLASS(tools, method, &class) == 0 &&
	    GET_CLASS_SIGNATURE(tools, class, &class_signature, NULL) == 0) {
		lock();
		ours = instead_of(class_signature, name, signature, address);
		unlock();
	}
	if (ours)
		*instead = ours;
	DEALLOCATE(name);
	DEALLOCATE(signature);
	DEALLOCATE(class_signature);
}

static void machine_begun(environment env, environment java, object thread)
{
	char *path = NULL;

	(void)env, (void)java, (void)thread;
	if (GET_PROPERTY(tools, "java.class.path", &path) != 0 || !path)
		return;
	lock();
	set_class_path(path);
	unlock();
	DEALLOCATE(path);
}

static void machine_ended(environment env, environment java)
{
	(void)env, (void)java;
	end_calls();
}

__attribute__((visibility("default"))) int32_t Agent_OnLoad(void ***machine, char *options, void *reserved);

/* Always 0: with anything else the JVM would not start. */
int32_t Agent_OnLoad(void ***machine, char *options, void *reserved)
{
	void *callbacks[EVENT_BIND - EVENT_FIRST + 1] = {0};
	uint32_t wanted[CAPABILITY_WORDS] = {1u << CAN_GET_SOURCE_FILE | 1u << CAN_GET_LINES | 1u << CAN_SEE_BINDS};
	int32_t (*get)(void *, void **, int32_t) = (int32_t(*)(void *, void **, int32_t))(*machine)[GET_ENVIRONMENT];
	void *got = NULL;
	unsigned port = 0;

	(void)reserved;
	if (tools || get(machine, &got, TOOLS_VERSION) != 0 || !got)
		return 0; /* named twice, or a JVM without the interface */
	tools = got;
	callbacks[EVENT_BEGIN - EVENT_FIRST] = (void *)machine_begun;
	callbacks[EVENT_DEATH - EVENT_FIRST] = (void *)machine_ended;
	callbacks[EVENT_BIND - EVENT_FIRST] = (void *)binding;
	for (; options && *options >= '0' && *options <= '9'; options++)
		port = 10 * port + (unsigned)(*options - '0');
	set_gateway_port(port);
	if (ADD_CAPABILITIES(tools, wanted) != 0 || SET_CALLBACKS(tools, callbacks, sizeof callbacks) != 0 ||
	    !open_teller(getenv("ONETRIP_CALLS")))
		return 0;
	for (int32_t event = EVENT_FIRST; event <= EVENT_BIND; event++)
		if (callbacks[event - EVENT_FIRST])
			SET_EVENT_MODE(tools, 1, event, NULL);
	return 0;
}
