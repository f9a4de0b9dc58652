/*
 * Which processes of QEMU are none of ours, by their arguments (RCV-26), with shells that have
 * such; and which files among the images are none.
 */
#include "world.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define UUID_1 "11111111-aaaa-4111-8111-111111111111"
#define UUID_2 "22222222-aaaa-4222-8222-222222222222"

/* A process of that name which waits, with those words. */
static GPid stand_in(const char *program, const char *words)
{
    g_autofree char *line =
        g_strdup_printf("sh %s -c 'while :; do sleep 1; done' x %s", program, words);
    g_auto(GStrv) argv = NULL;
    GPid pid = 0;
    g_assert_true(g_shell_parse_argv(line, NULL, &argv, NULL));
    g_assert_true(
        g_spawn_async("/", argv, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_FILE_AND_ARGV_ZERO | G_SPAWN_DO_NOT_REAP_CHILD,
                      NULL, NULL, &pid, NULL));
    return pid;
}

static void end(GPid pid)
{
    g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    waitpid(pid, NULL, 0);
}

static gint compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Tests beside this one run a QEMU without a name for a moment, to ask it something. */
static bool is_of_others(const struct stray *stray)
{
    return g_str_has_prefix(stray->identity, "pid ") &&
           strcmp(stray->name, "qemu-system-x86_64") == 0;
}

/* Those of all processes that the node tells, sorted, one a line. */
static char *told(const struct world_node *node)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) strays = node->hypervisor->ops->strays(node->hypervisor, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < strays->len; i++) {
        const struct stray *stray = strays->pdata[i];
        if (is_of_others(stray))
            continue;
        bool numbered = g_str_has_prefix(stray->identity, "pid ");
        g_ptr_array_add(lines, g_strdup_printf("%s: %s", stray->name,
                                               numbered ? "by its number" : stray->identity));
    }
    g_ptr_array_sort(lines, compare_texts);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

static void assert_told(const struct world_node *node, const char *expected)
{
    g_autofree char *lines = told(node);
    g_assert_cmpstr(lines, ==, expected);
}

static void foreign(void *unused)
{
    struct world_node *node = world_node_new("foreign");
    GPid all[] = {
        stand_in("qemu-system-x86_64", "-name guest=db,debug-threads=on -uuid " UUID_1),
        stand_in("/usr/libexec/qemu-kvm", "--name mail"),
        stand_in("qemu-system-aarch64", "-m 64"),
        stand_in("qemu-img", "-name guest=none"),
    };
    assert_told(node, "db: uuid " UUID_1 "\nmail: name mail\nqemu-system-aarch64: by its number");
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        end(all[i]);
    assert_told(node, "");
    world_node_free(node);
}

/* Guests of another root are told there; what has the mark of this one, and is known to nobody
 * here, is told; a boot that tries an accelerator is nobody's machine. */
static void marked(void *unused)
{
    struct world_node *node = world_node_new("marked");
    g_autofree char *own = g_strdup_printf("-uuid " UUID_1 " -name guest=lost -add-fd "
                                           "fd=6,set=2147483647,opaque=%s/guests/" UUID_1,
                                           node->paths->run);
    g_autofree char *trial =
        g_strdup_printf("-add-fd fd=3,set=0,opaque=%s/trial", node->paths->run);
    GPid all[] = {
        stand_in("qemu-system-x86_64", own),
        stand_in("qemu-system-x86_64", trial),
        stand_in("qemu-system-x86_64", "-uuid " UUID_2 " -name guest=theirs -add-fd "
                                       "fd=6,set=2147483647,opaque=/elsewhere/run/guests/" UUID_2),
    };
    assert_told(node, "lost: uuid " UUID_1);
    for (guint i = 0; i < G_N_ELEMENTS(all); i++)
        end(all[i]);
    world_node_free(node);
}

static void guest(struct world_node *node, struct instance *web1)
{
    world_make(node, web1);
    assert_told(node, "");
    world_end(node, web1);
}

static void files(void *unused)
{
    struct world_node *node = world_node_new("files");
    record_autoptr(instance) web1 = world_instance(1, 1);
    g_autoptr(GError) error = NULL;
    world_create(node, web1, "");
    g_autofree char *folder = g_build_filename(node->paths->var, "disks", NULL);
    for (const char *const *name =
             (const char *const[]){"notes.txt", ".hidden", ".nfs0001", UUID_1 ".disk0.raw.new",
                                   UUID_1 ".disk0.vdi", UUID_1 ".disk1.raw", NULL};
         *name; name++) {
        g_autofree char *path = g_build_filename(folder, *name, NULL);
        g_assert_true(g_file_set_contents(path, "", 0, NULL));
    }
    g_autoptr(GPtrArray) names = node->storage->ops->strays(node->storage, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(names->len, ==, 3);
    g_assert_cmpstr(names->pdata[0], ==, ".hidden");
    g_assert_cmpstr(names->pdata[1], ==, UUID_1 ".disk0.vdi");
    g_assert_cmpstr(names->pdata[2], ==, "notes.txt");
    world_node_free(node);
}

static void add(void)
{
    world_test("/strays/foreign#RCV-26", foreign);
    world_test("/strays/marked#RCV-26", marked);
    world_guest_test("/strays/guest", "guest", guest);
    world_test("/strays/files#RCV-26", files);
}

int main(int argc, char **argv)
{
    return world_tests(argc, argv, add);
}
