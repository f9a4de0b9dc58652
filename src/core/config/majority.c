/* See majority.h. */
#include "core/config/majority.h"

bool majority_counts(const struct node *node)
{
    return node->master_candidate && !node->offline;
}

guint majority_of(guint count)
{
    return count / 2 + 1;
}
