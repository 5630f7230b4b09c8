#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: wakewatt_profile
short_description: Power management settings as a plan - applied, kept, confirmed, undone exactly
version_added: "0.1.0"
description:
  - Brings the settings of a profile, of single knobs or of a latency budget about with C(wakewatt tune apply), which journals the
    old value of every setting before it writes, reads back what it wrote, and takes everything back if one setting is refused.
  - O(state=absent) puts back exactly what was there before.
  - Idempotent. Nothing is written where the settings hold already; that is decided on C(tune plan --json) and
    C(tune status --json).
  - In check mode nothing is written, and RV(diff) shows every setting before and after, from C(tune plan).
  - Needs root on the host (C(become)), except in check mode.
options:
  state:
    description:
      - V(present) makes the settings so.
      - V(absent) undoes the transactions that were made for the same settings; with none given, all of wakewatt's.
      - V(confirmed) keeps what O(confirm_within) would undo.
    type: str
    choices: [present, absent, confirmed]
    default: present
  profile:
    description:
      - A shipped profile (latency, throughput, efficiency, ...) or the path of a profile on the host.
    type: str
  set:
    description:
      - Single settings, C(KNOB[@PLACE]=VALUE), as C(wakewatt tune knobs) lists them.
    type: list
    elements: str
    default: []
  max_latency:
    description:
      - The latency budget, for example C(50us); only idle states that can be left in this time stay allowed.
    type: str
  persist:
    description:
      - Also set them again at every boot, through a systemd unit of wakewatt's.
    type: bool
    default: false
  confirm_within:
    description:
      - The host undoes the settings by itself after this time, for example C(120s), unless a task with O(state=confirmed) follows.
        So a host that loses its network, or whose gate fails, returns by itself to what it was.
    type: str
  exclusive:
    description:
      - Undo transactions of wakewatt's that stand on the same settings before applying, so that changing a value in a playbook
        replaces the old value and does not pile one transaction on the other.
    type: bool
    default: true
  force:
    description:
      - When undoing, also overwrite what somebody else has set since.
    type: bool
    default: false
extends_documentation_fragment:
  - wakewatt.wakewatt.common
author:
  - the wakewatt authors (@wakewatt)
attributes:
  check_mode:
    description: Nothing is written; what would change is told.
    support: full
  diff_mode:
    description: Every setting before and after.
    support: full
notes:
  - No option of this module is a secret; what is given here stands in the arguments of a program on the host and in its journal.
"""

EXAMPLES = r"""
- name: Only idle states that can be left within 50 microseconds, undone by itself unless confirmed
  wakewatt.wakewatt.wakewatt_profile:
    max_latency: 50us
    confirm_within: 120s
  become: true

- name: The service answers as it should
  ansible.builtin.command: /usr/local/bin/health-check
  changed_when: false

- name: Keep it
  wakewatt.wakewatt.wakewatt_profile:
    state: confirmed
  become: true

- name: One knob, also after a reboot
  wakewatt.wakewatt.wakewatt_profile:
    set: ["freq.governor=performance"]
    persist: true
  become: true

- name: Back to what was there before
  wakewatt.wakewatt.wakewatt_profile:
    state: absent
    max_latency: 50us
  become: true
"""

RETURN = r"""
changed:
  description: Whether a setting was written, or would be in check mode.
  returned: always
  type: bool
changes:
  description: One line for each setting that differs from what is wanted.
  returned: with state present
  type: list
  elements: str
  sample: ["freq.governor policy0: powersave -> performance"]
budget:
  description: What the latency budget comes to on this host.
  returned: with state present
  type: list
  elements: str
  sample: ["50us -> C1E (10us); C6 (92us) excluded; 51-91us would be the same"]
transaction:
  description: Name of the transaction that stands on the host, for C(wakewatt tune undo).
  returned: when one stands
  type: str
  sample: tune-1
undone:
  description: Names of the transactions that were undone, or would be in check mode.
  returned: always
  type: list
  elements: str
applied:
  description: The document of C(tune apply --json), schema C(wakewatt/tune-apply/v1).
  returned: when something was applied
  type: dict
diff:
  description: Every setting before and after.
  returned: when something changes
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.wakewatt.wakewatt.plugins.module_utils import tune
from ansible_collections.wakewatt.wakewatt.plugins.module_utils.cli import (
    DRIFT,
    FINE,
    NOT_RESTORED,
    PATH_OPTION,
    REFUSED,
    Wakewatt,
)

STATUS = "wakewatt/tune-status/v1"
PLAN = "wakewatt/tune-plan/v1"
APPLY = "wakewatt/tune-apply/v1"


class Task(object):
    """One run of the module."""

    def __init__(self, module):
        self.module = module
        self.params = module.params
        self.wakewatt = Wakewatt(module)
        self.wanted = tune.wanted(module.params)
        self.undone = []

    def transactions(self):
        """Those of tune that are complete, oldest first; what is open, or an experiment's, is left to those who made it."""
        codes = (FINE, DRIFT, NOT_RESTORED)
        status = self.wakewatt.document(["tune", "status", "--json"], STATUS, codes)[1]
        return [t for t in status["transactions"] if t["id"].startswith("tune-") and t["phase"] != "open"]

    def plan(self):
        code, plan = self.wakewatt.document(["tune", "plan", "--json"] + self.wanted, PLAN, (FINE, REFUSED))
        if code == REFUSED:
            why = plan["refused"] + ([plan["no_boot_because"]] if plan["no_boot_because"] else [])
            self.module.fail_json(msg="not possible on this host: %s" % "; ".join(why), plan=plan)
        return plan

    def undo(self, transactions, is_forced):
        """The latest first: what was set on top goes before what it was set upon."""
        for transaction in reversed(transactions):
            self.undone.append(transaction["id"])
            if not self.module.check_mode:
                self.wakewatt.run(["tune", "undo", transaction["id"]] + (["--force"] if is_forced else []))

    def present(self):
        plan = self.plan()
        all_transactions = self.transactions()
        own = [t for t in all_transactions if t["purpose"] == plan["purpose"]]
        standing = [t for t in own if tune.stands(t)]
        changes = [] if standing else tune.pending(plan)
        is_to_be_kept = self.params["persist"] and not any(tune.is_kept(t) for t in standing)
        result = dict(
            changed=bool(changes) or is_to_be_kept,
            changes=["%s %s: %s -> %s" % (name, place, was, will) for name, place, path, was, will in changes],
            budget=plan["budget"],
            undone=self.undone,
        )
        if standing:
            result["transaction"] = standing[-1]["id"]
        if not result["changed"]:
            return result
        result["diff"] = tune.diff(changes, is_to_be_kept)
        if self.params["exclusive"]:
            touched = tune.paths(plan)
            others = [
                t
                for t in all_transactions
                if t not in own and any(setting["path"] in touched for setting in t["settings"])
            ]
            self.undo(others, self.params["force"])
            # Our own, of which somebody has changed a setting since: we are told to make it so, and then can undo to what was before.
            self.undo(own, True)
        if self.module.check_mode:
            return result
        arguments = ["tune", "apply", "--json"] + self.wanted
        if self.params["persist"]:
            arguments.append("--persist")
        if self.params["confirm_within"]:
            arguments += ["--confirm-within", self.params["confirm_within"]]
        applied = self.wakewatt.document(arguments, APPLY)[1]
        result["applied"] = applied
        if applied["id"]:
            result["transaction"] = applied["id"]
        return result

    def absent(self):
        transactions = self.transactions()
        if self.wanted:
            purpose = self.plan()["purpose"]
            transactions = [t for t in transactions if t["purpose"] == purpose]
        changes = [
            (s["name"] or s["path"], t["id"], s["path"], s["now_shown"], "as before %s" % t["id"])
            for t in transactions
            for s in t["settings"]
        ]
        self.undo(transactions, self.params["force"])
        result = dict(changed=bool(transactions), undone=self.undone)
        if transactions:
            result["diff"] = tune.diff(changes, False)
        return result

    def confirmed(self):
        waiting = [t for t in self.transactions() if t["phase"] == "unconfirmed"]
        if self.wanted:
            # Only what was asked for here: another's change may wait for a gate of its own.
            plan = self.plan()
            waiting = [t for t in waiting if t["purpose"] == plan["purpose"]]
            if not waiting and tune.pending(plan):
                self.module.fail_json(
                    msg="nothing waits for confirmation and the settings are not so: they undid themselves",
                    undone=self.undone,
                )
        waiting = [t["id"] for t in waiting]
        if waiting and not self.module.check_mode:
            for name in waiting:
                self.wakewatt.run(["tune", "confirm", name])
        result = dict(changed=bool(waiting), undone=self.undone)
        if waiting:
            result["transaction"] = waiting[-1]
        return result


def main():
    module = AnsibleModule(
        argument_spec=dict(
            state=dict(type="str", choices=["present", "absent", "confirmed"], default="present"),
            profile=dict(type="str"),
            set=dict(type="list", elements="str", default=[]),
            max_latency=dict(type="str"),
            persist=dict(type="bool", default=False),
            confirm_within=dict(type="str"),
            exclusive=dict(type="bool", default=True),
            force=dict(type="bool", default=False),
            wakewatt_path=PATH_OPTION,
        ),
        supports_check_mode=True,
    )
    task = Task(module)
    state = module.params["state"]
    if state == "present" and not task.wanted:
        module.fail_json(msg="say what is wanted: profile, set or max_latency")
    module.exit_json(**getattr(task, state)())


if __name__ == "__main__":
    main()
