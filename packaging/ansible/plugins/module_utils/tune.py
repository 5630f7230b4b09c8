# -*- coding: utf-8 -*-
# Licensed under MIT or Apache-2.0, at your choice (see the LICENSE files of wakewatt).
# SPDX-License-Identifier: MIT OR Apache-2.0
"""What the documents of `wakewatt tune` come to for a task: is it so already, what would change, what is in the way."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

# The profile that is applied at boot (docs/methods, `tune apply --persist`).
BOOT_ENTRY = "file:/etc/wakewatt/boot.toml"


def wanted(params):
    """Arguments of `tune plan` and `tune apply` that say what is wanted."""
    arguments = []
    if params["profile"]:
        arguments.append(params["profile"])
    for setting in params["set"]:
        arguments += ["--set", setting]
    if params["max_latency"]:
        arguments += ["--max-latency", params["max_latency"]]
    return arguments


def pending(plan):
    """Changes of a plan that are not so already, as (name, place, path, before, after)."""
    found = []
    for step in plan["steps"]:
        name = step["request"]["name"]
        for change in step["changes"]:
            if change["before"] != change["to"]:
                before, after = change["before_shown"], change["to_shown"]
                found.append((name, change["place"], change["path"], before, after))
    for file in (plan["boot"] or {}).get("files", []):
        if file["before"] != file["after"]:
            arguments = " ".join(plan["boot"]["arguments"])
            found.append(("kernel parameters", file["path"], "file:" + file["path"], "without", arguments))
    return found


def paths(plan):
    """Everything that a plan would write to."""
    return set(change["path"] for step in plan["steps"] for change in step["changes"])


def diff(changes, is_persistent):
    """Settings before and after, a line each, as ansible shows differences."""
    before, after = [], []
    for name, place, path, was, will in changes:
        before.append("%s %s: %s" % (name, place, "not there" if was is None else was))
        after.append("%s %s: %s" % (name, place, will))
    if is_persistent:
        before.append("at every boot: not set")
        after.append("at every boot: set again")
    text = ["\n".join(lines) + "\n" if lines else "" for lines in (before, after)]
    return dict(before=text[0], after=text[1], before_header="settings now", after_header="settings as planned")


def is_good(setting):
    """Does a setting of `tune status` hold, as far as can be told?"""
    verdict = setting["verdict"]
    if isinstance(verdict, dict):
        return "clamped" in verdict or "unknown" in verdict
    return verdict == "holds"


def stands(transaction):
    """Was it made to stay, in this boot, and does all of it hold?"""
    return (
        transaction["phase"] in ("applied", "unconfirmed")
        and transaction["is_of_this_boot"]
        and all(is_good(setting) for setting in transaction["settings"])
    )


def is_kept(transaction):
    """Is it set again at every boot?"""
    return any(setting["path"] == BOOT_ENTRY for setting in transaction["settings"])


def broken_lines(transaction):
    """A line for each setting that does not hold."""
    lines = []
    for setting in transaction["settings"]:
        if not is_good(setting):
            words = (
                transaction["id"],
                setting["name"] or "setting",
                setting["requested_shown"] or setting["requested"],
                setting["now_shown"] or setting["now"] or "not there",
                setting["path"],
            )
            lines.append("%s: %s should be %s, is %s (%s)" % words)
    return lines
