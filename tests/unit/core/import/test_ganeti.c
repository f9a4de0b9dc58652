/* A config.data of Ganeti as a plan: what is taken, what is said to have no counterpart, what is in
 * the way. The files are those that the fuzz target begins with; their folder is the argument. */
#include <string.h>

#include "core/import/ganeti.h"
#include "unit/core/world/config_world.h"

static const char *folder;

static struct config *three_nodes(void)
{
    g_autoptr(GPtrArray) start = initial_changes();
    struct config *config = config_new();
    for (guint i = 0; i < start->len; i++) {
        const struct change *change = start->pdata[i];
        if (strcmp(change->kind, "instance") != 0 && strcmp(change->kind, "replica") != 0)
            g_assert_true(config_apply(config, change, NULL));
    }
    return config;
}

static json_t *read_sample(const char *name)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autofree char *text = NULL;
    size_t len = 0;
    g_assert_true(g_file_get_contents(path, &text, &len, NULL));
    json_t *json = json_parse_limited(text, len, MIB(1), NULL);
    g_assert_nonnull(json);
    return json;
}

/* Both stolen. */
static struct import *plan_for(struct config *config, json_t *json)
{
    struct import *import = import_new();
    g_autoptr(GError) error = NULL;
    g_assert_true(import_ganeti(import, config, json, &error));
    config_free(config);
    json_decref(json);
    return import;
}

static struct import *plan_of(const char *name)
{
    return plan_for(three_nodes(), read_sample(name));
}

/* `json` is stolen. */
static void add_object(struct config *config, const char *kind, const char *key, json_t *json)
{
    g_autoptr(GPtrArray) change = changes_of(put(kind, key, 1, json), NULL);
    g_assert_true(config_apply(config, change->pdata[0], NULL));
}

static void assert_lines(const GPtrArray *lines, const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)lines->pdata[i]);
    g_assert_cmpstr(text->str, ==, expected);
}

static const json_t *object_of(const struct import *import, const char *kind, const char *key)
{
    for (guint i = 0; i < import->changes->len; i++) {
        const struct change *change = import->changes->pdata[i];
        if (!strcmp(change->kind, kind) && !strcmp(change->key, key))
            return change->object;
    }
    g_assert_not_reached();
}

#define MAIL "7c000000-0000-4000-8000-000000000001"
#define WEB "7c000000-0000-4000-8000-000000000002"
#define LAN "7e000000-0000-4000-8000-000000000001"
#define RULES "78000000-0000-4000-8000-0000000000"
#define RULE1 RULES "01"
#define RULE2 RULES "02"

static void assert_object(const struct import *import, const char *kind, const char *key,
                          const char *expected)
{
    json_autoptr object = json_incref((json_t *)object_of(import, kind, key));
    g_autofree char *text = json_to_text(object);
    g_assert_cmpstr(text, ==, expected);
}

static void test_3_0(void)
{
    g_autoptr(import_t) import = plan_of("3.0.json");
    assert_lines(import->problems, "");
    assert_lines(import->lines,
                 "add nodegroup east\n"
                 "change cluster c1: max_running_jobs: 20 -> 30, mac_prefix: aa:00:00 -> aa:00:17, "
                 "default_link: br0 -> br-lan, candidate_pool_size: 3 -> 5\n"
                 "add network public\n"
                 "change node node2: drained: false -> true\n"
                 "change node node3: group: " GROUP " -> 7a000000-0000-4000-8000-000000000002, "
                 "master_capable: true -> false\n"
                 "add instance mail.example.org\n"
                 "add instance web.example.org\n"
                 "add instance probe\n"
                 "add tag site:east of cluster c1\n"
                 "add tag owner:ops of instance mail.example.org\n"
                 "add tag rack:4 of node node2\n"
                 "add tag power:b of nodegroup east\n"
                 "add job_filter " RULE1 "\n");
    assert_lines(
        import->notes,
        "cluster: the name stays c1 (the file is of old.example.org)\n"
        "cluster: hvparams (all but vnc_bind_address) and diskparams have no counterpart here; "
        "guests run under QEMU with what their instance says\n"
        "cluster: enabled_disk_templates has no counterpart here: [\"drbd\",\"plain\"]\n"
        "cluster: enabled_hypervisors has no counterpart here: [\"kvm\"]\n"
        "cluster: ipolicy has no counterpart here: "
        "{\"disk-templates\":[\"drbd\",\"plain\"],\"spindle-ratio\":32,\"vcpu-ratio\":4}\n"
        "cluster: max_tracked_jobs has no counterpart here: 25\n"
        "node group east: alloc_policy last_resort has no counterpart here\n"
        "node node1: is a master candidate there and none here; the watcher promotes nodes while "
        "there are too few (fettle node modify node1 --master-candidate yes)\n"
        "node node2: is a master candidate there and none here; the watcher promotes nodes while "
        "there are too few (fettle node modify node2 --master-candidate yes)\n"
        "node node3: is a master candidate there and none here; the watcher promotes nodes while "
        "there are too few (fettle node modify node3 --master-candidate yes)\n"
        "node node3: secondary_ip 198.51.100.3 has no counterpart here; copies of disks take the "
        "node's one address\n"
        "node node3: is offline there; here that is a person's word that it is dead (fettle node "
        "modify --offline)\n"
        "instance mail.example.org: disk template drbd becomes mirror; its bytes have to be "
        "brought over\n"
        "instance mail.example.org: is up there and comes stopped; stop it there for good before "
        "it is started here\n"
        "instance mail.example.org: minmem 512 has no counterpart here; it has maxmem, 1024 MiB\n"
        "instance mail.example.org: its second copy on node2 is not taken over; when it has images "
        "give it one: fettle instance replace-disks mail.example.org\n"
        "instance web.example.org: disk template plain becomes file; its bytes have to be brought "
        "over\n"
        "instance web.example.org: disks[1]: mode ro has no counterpart here; guests may write to "
        "their disks\n"
        "instance web.example.org: hvparams: kernel_path has no counterpart here: "
        "\"/boot/vmlinuz\"\n"
        "instance probe: hypervisor xen-pvm: here it runs under QEMU, and needs an image that "
        "boots there\n"
        "instance mail.example.org: comes stopped and without images; `fettle instance "
        "recreate-disks mail.example.org` makes blank ones\n"
        "instance web.example.org: comes stopped and without images; `fettle instance "
        "recreate-disks web.example.org` makes blank ones\n");
    const json_t *mail = object_of(import, "instance", MAIL);
    g_assert_cmpint(json_integer_value(json_object_get(mail, "memory")), ==, 1024);
    g_assert_cmpint(json_integer_value(json_object_get(mail, "vcpus")), ==, 2);
    g_assert_cmpint(json_integer_value(json_object_get(mail, "ctime")), ==, 1700000100);
    g_assert_cmpstr(json_string_value(json_object_get(mail, "admin_state")), ==, "down");
    g_assert_cmpstr(json_string_value(json_object_get(mail, "primary_node")), ==, NODE1);
    json_autoptr nics = json_incref(json_object_get(object_of(import, "instance", WEB), "nics"));
    g_autofree char *text = json_to_text(nics);
    g_assert_cmpstr(
        text, ==,
        "[{\"ip\":\"203.0.113.7\",\"link\":\"100\",\"mac\":\"aa:00:00:00:00:02\","
        "\"mode\":\"routed\",\"network\":\"" LAN
        "\",\"uuid\":\"7f000000-0000-4000-8000-000000000002\"},"
        "{\"ip\":\"\",\"link\":\"br-dmz\",\"mac\":\"aa:00:00:00:00:03\","
        "\"mode\":\"bridged\",\"network\":\"\",\"uuid\":\"7f000000-0000-4000-8000-000000000003\"}"
        "]");
}

/* --- displays --- */

/* Each instance of the sample with a port and, if not NULL, an address of its own. */
static struct import *plan_displays(struct config *config, const char *address, json_int_t port,
                                    const char *other_address, json_int_t other_port)
{
    json_t *json = read_sample("3.0.json");
    json_t *instances = json_object_get(json, "instances");
    json_t *kvm =
        json_object_get(json_object_get(json_object_get(json, "cluster"), "hvparams"), "kvm");
    json_t *mail = json_object_get(instances, MAIL), *web = json_object_get(instances, WEB);
    json_object_set_new(kvm, "vnc_bind_address", json_string("0.0.0.0"));
    json_object_set_new(mail, "network_port", json_integer(port));
    json_object_set_new(web, "network_port", json_integer(other_port));
    if (address)
        json_object_set_new(json_object_get(mail, "hvparams"), "vnc_bind_address",
                            json_string(address));
    if (other_address)
        json_object_set_new(json_object_get(web, "hvparams"), "vnc_bind_address",
                            json_string(other_address));
    return plan_for(config, json);
}

static void assert_display(const struct import *import, const char *uuid, const char *address,
                           json_int_t port)
{
    const json_t *instance = object_of(import, "instance", uuid);
    g_assert_cmpstr(json_string_value(json_object_get(instance, "vnc_bind_address")), ==, address);
    g_assert_cmpint(json_integer_value(json_object_get(instance, "network_port")), ==, port);
}

static void assert_no_display(const struct import *import, const char *uuid, const char *name,
                              const char *why)
{
    g_autofree char *note = g_strdup_printf(
        "instance %s: its display is not taken over: %s; give it one: fettle instance modify "
        "--vnc-bind-address 127.0.0.1 %s",
        name, why, name);
    assert_display(import, uuid, "", 0);
    for (guint i = 0; i < import->notes->len; i++)
        if (!strcmp(import->notes->pdata[i], note))
            return;
    g_test_fail_printf("not said: %s", note);
}

/* The instance's own address before that of the cluster; an empty one is none. */
static void test_displays(void)
{
    g_autoptr(import_t) import = plan_displays(three_nodes(), "127.0.0.1", 11000, NULL, 11005);
    assert_lines(import->problems, "");
    assert_display(import, MAIL, "127.0.0.1", 11000);
    assert_display(import, WEB, "0.0.0.0", 11005);
    g_autoptr(import_t) none = plan_displays(three_nodes(), "", 11000, NULL, 11000);
    assert_display(none, MAIL, "", 0);
    assert_display(none, WEB, "0.0.0.0", 11000);
}

static void test_displays_left_out(void)
{
    struct config *config = three_nodes();
    add_object(config, "instance", DB1,
               with(with(object_db1(), "vnc_bind_address", json_string("127.0.0.1")),
                    "network_port", json_integer(11007)));
    g_autoptr(import_t) twice = plan_displays(three_nodes(), NULL, 11000, NULL, 11000);
    assert_display(twice, MAIL, "0.0.0.0", 11000);
    assert_no_display(twice, WEB, "web.example.org",
                      "network_port: 11000 is that of another instance of the file");
    g_autoptr(import_t) taken = plan_displays(config, NULL, 11007, NULL, 0);
    assert_no_display(taken, MAIL, "mail.example.org",
                      "network_port: 11007 is taken by instance \"db1\"");
    assert_no_display(taken, WEB, "web.example.org", "network_port: is missing");
    g_autoptr(import_t) odd = plan_displays(three_nodes(), "/run/vnc", 11000, NULL, 20000);
    assert_no_display(odd, MAIL, "mail.example.org",
                      "vnc_bind_address: \"/run/vnc\" is no address that every node has; there are "
                      "127.0.0.1 (only from the node itself, or by a tunnel), 0.0.0.0, and :: "
                      "with IPv6 too (from everywhere, without a password)");
    assert_no_display(odd, WEB, "web.example.org",
                      "network_port: 20000 is not in the cluster's port_range, 11000-14999; see "
                      "fettle cluster modify --port-range");
}

/* --- the rest --- */

static void test_2_16(void)
{
    g_autoptr(import_t) import = plan_of("2.16.json");
    assert_lines(import->problems, "");
    const json_t *build = object_of(import, "instance", "7c000000-0000-4000-8000-000000000004");
    g_assert_cmpstr(json_string_value(json_object_get(build, "disk_template")), ==, "sharedfile");
    g_assert_cmpint(json_integer_value(json_object_get(build, "memory")), ==, 256);
    g_assert_cmpint(json_integer_value(json_object_get(build, "vcpus")), ==, 4);
    const json_t *nic = json_array_get(json_object_get(build, "nics"), 0);
    g_assert_cmpstr(json_string_value(json_object_get(nic, "mode")), ==, "openvswitch");
    g_assert_cmpstr(json_string_value(json_object_get(nic, "link")), ==, "ovs0");
    bool vlan = false;
    for (guint i = 0; i < import->notes->len; i++)
        vlan = vlan || !strcmp(import->notes->pdata[i],
                               "instance build: nics[0]: vlan .7 has no counterpart here");
    g_assert_true(vlan);
}

static void test_problems(void)
{
    g_autoptr(import_t) import = plan_of("problems.json");
    assert_lines(
        import->problems,
        "node node2: group: the file has no node group \"nowhere\"\n"
        "node stranger: is no node of this cluster; let the host join first (fettle node invite "
        "stranger)\n"
        "instance mail.example.org: disks[0].dev_type: \"rbd\" has no counterpart here; there are "
        "mirror, file and sharedfile\n"
        "instance web.example.org: disks[1].dev_type: is file, and another disk is drbd8; here all "
        "disks of an instance are kept alike\n"
        "instance probe: primary_node: \"7b000000-0000-4000-8000-000000000003\" is no node of this "
        "cluster\n"
        "instance probe: disks[0]: the file has no disk \"gone\"\n");
}

static struct config *with_jobs(void)
{
    struct config *config = three_nodes();
    add_object(config, "counter", "job", json_make("{s:i}", "value", 7));
    return config;
}

#define LOOSE                                                                                      \
    "is not taken over: predicates[0]: here it can hold for opcodes without a parameter "          \
    "\"instance_name\" as well, in Ganeti it does not"

/* Of rule RULES + digits. */
static const struct {
    const char *digits;
    const char *note;
} of_filters[] = {
    {"01", "PAUSE is for every job: none runs here that no earlier rule accepts, until it is "
           "removed (fettle queue filter remove " RULE1 ")"},
    {"02", "its watermark is job 7, the newest one here"},
    {"04", "is not taken over: predicates[0]: it asks for the job id 4711, and jobs have other ids "
           "here"},
    {"05", "is not taken over: predicates[1]: in Ganeti a predicate about reason never holds with "
           "\"=~\""},
    {"06", LOOSE},
    {"07", "is not taken over: predicates[0]: no opcode here has a parameter \"hypervisor\""},
    {"08", "there is no opcode OP_OOB_COMMAND here"},
    {"09", "is not taken over: action: must be ACCEPT, CONTINUE, PAUSE, REJECT or "
           "[\"RATE_LIMIT\", n] with n of at least 1"},
    {"10", "is not taken over: predicates[0][1]: filter[1]: unknown field \"who\""},
    {"11", "is not taken over: priority: must be at most 1000000"},
    {"12", "is not taken over: reason[0]: must be [source, text, nanoseconds]"},
    {"13", LOOSE},
    {"14", "comment has no counterpart here: \"of the night shift\""},
    {"15", LOOSE},
    {"16", "is not taken over: predicates[0]: in Ganeti a predicate about jobid never holds with "
           "\"=~\""},
};

/* What decides here as it did there is taken over, of the rest it is said why it is not. */
static void test_filters(void)
{
    g_autoptr(import_t) import = plan_for(with_jobs(), read_sample("filters.json"));
    g_autoptr(GString) notes = g_string_new(
        "cluster: candidate_pool_size stays 3 (the file has 10, and here there can be 1 to 7)\n"
        "cluster: hvparams (all but vnc_bind_address) and diskparams have no counterpart here; "
        "guests run under QEMU with what their instance says\n"
        "node node1: is a master candidate there and none here; the watcher promotes nodes while "
        "there are too few (fettle node modify node1 --master-candidate yes)\n");
    for (guint i = 0; i < G_N_ELEMENTS(of_filters); i++)
        g_string_append_printf(notes, "job filter " RULES "%s: %s\n", of_filters[i].digits,
                               of_filters[i].note);
    g_string_append(notes,
                    "job filter nightly: is not taken over: uuid: must be a UUID in lower case\n"
                    "job filter " RULES "03: is asked after " RULE2
                    " here, which was made later and has priority 3 too; where that matters give "
                    "one of them another (fettle queue filter replace)\n");
    assert_lines(import->problems, "");
    assert_lines(import->notes, notes->str);
    assert_lines(import->lines, "add job_filter " RULES "01\n"
                                "add job_filter " RULES "02\n"
                                "add job_filter " RULES "03\n"
                                "add job_filter " RULES "08\n"
                                "add job_filter " RULES "14\n"
                                "add job_filter " RULES "17\n");
    assert_object(import, "job_filter", RULE2,
                  "{\"action\":\"REJECT\",\"predicates\":[[\"jobid\",[\">\",\"id\",\"watermark\"]]]"
                  ",\"priority\":3,\"reason\":[],\"uuid\":\"" RULE2 "\",\"watermark\":7}");
}

/* What no filter of Ganeti looks like is in the way. */
static void test_no_filter(void)
{
    g_autoptr(import_t) import = plan_for(
        three_nodes(), with(read_sample("filters.json"), "filters", json_make("{s:[]}", RULE1)));
    assert_lines(import->problems, "filters." RULE1 ": must be an object\n");
}

/* A rule that has been changed here since is not changed back. */
static void test_filter_is_here(void)
{
    struct config *config = three_nodes();
    add_object(config, "job_filter", RULE1,
               json_make("{s:s,s:i,s:[],s:s}", "uuid", RULE1, "priority", 1, "predicates", "action",
                         "ACCEPT"));
    json_t *json = read_sample("filters.json");
    json_t *filters = json_object_get(json, "filters");
    json_autoptr kept = json_incref(json_object_get(filters, RULE1));
    json_object_clear(filters);
    json_object_set(filters, RULE1, kept);
    g_autoptr(import_t) import = plan_for(config, json);
    assert_lines(import->problems, "");
    assert_lines(import->lines, "");
    g_assert_cmpstr(import->notes->pdata[import->notes->len - 1], ==,
                    "job filter " RULE1 ": is here already and is left as it is");
}

#define PROD "7e000000-0000-4000-8000-00000000000a"

static struct config *with_network(const char *name, const char *mode)
{
    struct config *config = three_nodes();
    add_object(config, "network", PROD,
               json_make("{s:s,s:s,s:s,s:s,s:s}", "uuid", PROD, "name", name, "network",
                         "203.0.113.128/28", "mode", mode, "link", "br-prod"));
    return config;
}

static const char *network_of_card(const struct import *import, guint index)
{
    const json_t *nics = json_object_get(object_of(import, "instance", MAIL), "nics");
    return json_string_value(json_object_get(json_array_get(nics, index), "network"));
}

static void test_networks(void)
{
    g_autoptr(import_t) import =
        plan_for(with_network("prod", "bridged"), read_sample("networks.json"));
    assert_lines(import->problems, "");
    assert_lines(import->lines,
                 "add nodegroup east\n"
                 "add network lan\n"
                 "add network dmz\n"
                 "change node node2: group: " GROUP " -> 7a000000-0000-4000-8000-000000000002\n"
                 "add instance router\n");
    assert_lines(
        import->notes,
        "cluster: candidate_pool_size stays 3 (the file has \"many\", and here there can "
        "be 1 to "
        "7)\n"
        "cluster: hvparams (all but vnc_bind_address) and diskparams have no counterpart here; "
        "guests run under QEMU "
        "with "
        "what their instance says\n"
        "node node1: is a master candidate there and none here; the watcher promotes "
        "nodes while "
        "there are too few (fettle node modify node1 --master-candidate yes)\n"
        "node node2: powered no has no counterpart here\n"
        "network lan: vlan .7 of node group east has no counterpart here\n"
        "network lan: tags have no counterpart here: [\"vlan-7\"]\n"
        "network lan: network6 has no counterpart here: \"2001:db8::/64\"\n"
        "network split: is not taken over: node group default connects it bridged on "
        "\"br-a\", "
        "and east routed on \"100\"; here a network is connected in one way\n"
        "network lonely: is not taken over: no node group connects it, so there is no "
        "mode and no "
        "link for it\n"
        "network large: is not taken over: network: \"10.0.0.0/8\" is no network; one "
        "looks like "
        "192.0.2.0/24, and has /16 to /30\n"
        "network garbled: is not taken over: ext_reservations: must be a digit 0 or 1 for "
        "each of "
        "16 addresses\n"
        "network short: is not taken over: ext_reservations: must be a digit 0 or 1 for "
        "each of "
        "16 addresses\n"
        "network lost: is not taken over: gateway: \"203.0.113.1\" is no address of a "
        "host in "
        "203.0.113.32/28\n"
        "network prod: is here already and is left as it is\n"
        "instance router: nics[1]: is in no network here, with mode bridged and link br-lan; "
        "network lan: 192.0.2.1 is its gateway\n"
        "instance router: nics[2]: is in no network here, with mode bridged and link br-lan; "
        "network lan: 192.0.2.50 is reserved\n"
        "instance router: nics[3]: is in no network here, with mode bridged and link br-a; "
        "network split: it is not taken over\n"
        "instance router: nics[4]: is in no network here, with mode bridged and link br0; "
        "network dmz: cards in it are bridged on \"br-dmz\" here\n");
    assert_object(import, "network", LAN,
                  "{\"gateway\":\"192.0.2.1\",\"link\":\"br-lan\",\"mac_prefix\":\"aa:00:42\","
                  "\"mode\":\"bridged\",\"name\":\"lan\",\"network\":\"192.0.2.0/24\","
                  "\"reserved\":[\"192.0.2.2-192.0.2.3\",\"192.0.2.50\",\"192.0.2.254\"],"
                  "\"uuid\":\"" LAN "\"}");
    static const char *const networks[] = {LAN, "", "", "", "", PROD, LAN};
    for (guint i = 0; i < G_N_ELEMENTS(networks); i++)
        g_assert_cmpstr(network_of_card(import, i), ==, networks[i]);
}

/* A network of that name that is here counts, however it is connected. */
static void test_network_is_here(void)
{
    g_autoptr(import_t) import =
        plan_for(with_network("prod", "openvswitch"), read_sample("networks.json"));
    assert_lines(import->problems, "");
    g_assert_cmpstr(network_of_card(import, 5), ==, "");
    g_assert_cmpstr(import->notes->pdata[import->notes->len - 1], ==,
                    "instance router: nics[5]: is in no network here, with mode bridged and link "
                    "br-prod; network prod: cards in it are openvswitch on "
                    "\"br-prod\" here");
}

/* Two networks of the file are set against each other by the rules of every commit. */
static void test_networks_overlap(void)
{
    json_t *json = read_sample("networks.json");
    json_t *dmz =
        json_object_get(json_object_get(json, "networks"), "7e000000-0000-4000-8000-000000000008");
    json_t *east = json_object_get(json_object_get(json, "nodegroups"),
                                   "7a000000-0000-4000-8000-000000000002");
    json_object_set_new(dmz, "network", json_string("192.0.2.128/25"));
    json_object_set_new(
        json_object_get(json_object_get(east, "networks"), "7e000000-0000-4000-8000-000000000008"),
        "link", json_string("br-lan"));
    g_autoptr(import_t) import = plan_for(three_nodes(), json);
    assert_lines(import->problems,
                 "network lan (" LAN "): network: 192.0.2.0/24 overlaps with 192.0.2.128/25 of "
                 "network \"dmz\", which has the same link\n");
}

static void assert_refused(json_t *json, const char *expected)
{
    struct config *config = three_nodes();
    g_autoptr(import_t) import = import_new();
    g_autoptr(GError) error = NULL;
    g_assert_false(import_ganeti(import, config, json, &error));
    g_autofree char *said = g_strdup_printf("%s: %s", fettle_error_name(error), error->message);
    g_assert_cmpstr(said, ==, expected);
    json_decref(json);
    config_free(config);
}

static void test_heads(void)
{
    assert_refused(json_object(), "wrong_input: version: is missing; this is no config.data of "
                                  "Ganeti");
    assert_refused(json_make("{s:i,s:{}}", "version", 3000000, "cluster"),
                   "wrong_input: nodes: is missing, or is no object; this is no config.data of "
                   "Ganeti");
    assert_refused(with(read_sample("3.0.json"), "version", json_integer(2120000)),
                   "wrong_input: version: is 2120000 (Ganeti 2.12); files of 2.16, 3.0 and 3.1 can "
                   "be read: upgrade that cluster first");
}

/* Whoever gives the command twice gets the same cluster. */
static void test_twice(void)
{
    struct config *config = three_nodes();
    json_autoptr json = read_sample("3.0.json");
    g_autoptr(import_t) first = import_new();
    g_autoptr(import_t) second = import_new();
    g_assert_true(import_ganeti(first, config, json, NULL));
    for (guint i = 0; i < first->changes->len; i++)
        g_assert_true(config_apply(config, first->changes->pdata[i], NULL));
    g_assert_true(import_ganeti(second, config, json, NULL));
    assert_lines(second->problems, "");
    assert_lines(second->lines, "");
    config_free(config);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    folder = argc > 1 ? argv[1] : ".";
    g_test_add_func("/ganeti/3.0", test_3_0);
    g_test_add_func("/ganeti/displays", test_displays);
    g_test_add_func("/ganeti/displays/left-out", test_displays_left_out);
    g_test_add_func("/ganeti/2.16", test_2_16);
    g_test_add_func("/ganeti/filters#FUT-13", test_filters);
    g_test_add_func("/ganeti/filters/no-object", test_no_filter);
    g_test_add_func("/ganeti/filters/is-here", test_filter_is_here);
    g_test_add_func("/ganeti/networks#WCF-19", test_networks);
    g_test_add_func("/ganeti/networks/is-here", test_network_is_here);
    g_test_add_func("/ganeti/networks/overlap", test_networks_overlap);
    g_test_add_func("/ganeti/problems", test_problems);
    g_test_add_func("/ganeti/heads", test_heads);
    g_test_add_func("/ganeti/twice", test_twice);
    return g_test_run();
}
