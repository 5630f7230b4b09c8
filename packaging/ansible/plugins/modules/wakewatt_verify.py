#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: wakewatt_verify
short_description: Whether the settings that wakewatt made still hold
version_added: "0.1.0"
description:
  - Runs C(wakewatt tune status --json), or C(tune verify --json) with O(measure), on the host.
  - Fails where a setting does not hold, so that it can be a gate in a play; O(fail) turns that off.
  - Changes no setting. With O(measure) it wakes a CPU for some seconds.
options:
  measure:
    description:
      - Also check what a kernel parameter was to bring about, and measure some wake-ups where settings are about idle states.
    type: bool
    default: false
  fail:
    description:
      - Fail the task where something does not hold.
    type: bool
    default: true
extends_documentation_fragment:
  - wakewatt.wakewatt.common
  - wakewatt.wakewatt.common.reads
author:
  - the wakewatt authors (@wakewatt)
"""

EXAMPLES = r"""
- name: Every setting of wakewatt's holds, also after the reboot
  wakewatt.wakewatt.wakewatt_verify:
    measure: true
  become: true
"""

RETURN = r"""
holds:
  description: Whether everything holds; true also where nothing is applied.
  returned: always
  type: bool
broken:
  description: One line for each setting that does not hold.
  returned: always
  type: list
  elements: str
  sample: ["tune-1: freq.governor should be performance, is powersave (/sys/devices/system/cpu/cpufreq/policy0/scaling_governor)"]
status:
  description: The whole document, schema C(wakewatt/tune-status/v1).
  returned: always
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.wakewatt.wakewatt.plugins.module_utils.cli import (
    DRIFT,
    FINE,
    NOT_RESTORED,
    PATH_OPTION,
    Wakewatt,
)
from ansible_collections.wakewatt.wakewatt.plugins.module_utils.tune import broken_lines


def main():
    module = AnsibleModule(
        argument_spec=dict(
            measure=dict(type="bool", default=False),
            fail=dict(type="bool", default=True),
            wakewatt_path=PATH_OPTION,
        ),
        supports_check_mode=True,
    )
    verb = "verify" if module.params["measure"] else "status"
    code, status = Wakewatt(module).document(
        ["tune", verb, "--json"], "wakewatt/tune-status/v1", (FINE, DRIFT, NOT_RESTORED)
    )
    broken = [line for transaction in status["transactions"] for line in broken_lines(transaction)]
    result = dict(changed=False, holds=code == FINE, broken=broken, status=status)
    if code != FINE and module.params["fail"]:
        module.fail_json(msg="settings do not hold: %s" % ("; ".join(broken) or "see status"), rc=code, **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
