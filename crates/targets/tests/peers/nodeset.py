"""Answers for the tests: what ClusterShell's NodeSet makes of each question, a JSON object a line, in one process."""

import json
import sys

from ClusterShell.NodeSet import NodeSet, RESOLVER_NOGROUP
from ClusterShell.NodeUtils import GroupResolver, GroupResolverConfig, GroupSource


class TextSource(GroupSource):
    """A source whose groups are given, and which has no list of all nodes but a group "all"."""

    def resolv_all(self):
        self.allgroups = self.groups.get("all")
        return GroupSource.resolv_all(self)


def resolver(question):
    """The groups that a question brings along: a groups.conf, sources as dicts, or none."""
    if "groups_conf" in question:
        return GroupResolverConfig([question["groups_conf"]], set("@,!&^*"))
    if "sources" in question:
        sources = [TextSource(name, groups) for name, groups in question["sources"].items()]
        groups = GroupResolver(sources[0], set("@,!&^*"))
        for source in sources[1:]:
            groups.add_source(source)
        return groups
    return RESOLVER_NOGROUP


def answer(question):
    """What NodeSet says, in the shape that the tests read."""
    if "fold" in question:
        return {"folded": str(NodeSet.fromlist(question["fold"], resolver=RESOLVER_NOGROUP))}
    nodes = NodeSet(question["expand"], resolver=resolver(question))
    return {"names": list(nodes), "folded": str(nodes)}


for line in sys.stdin:
    try:
        reply = answer(json.loads(line))
    except Exception as error:  # whatever it is, the test compares that there was one
        reply = {"error": "%s: %s" % (type(error).__name__, error)}
    print(json.dumps(reply), flush=True)
