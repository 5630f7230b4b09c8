#!/usr/bin/python
# -*- coding: utf-8 -*-
# SPDX-License-Identifier: MIT OR Apache-2.0

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: wakewatt_facts
short_description: Facts about idle states, frequency, latency limits and the rest of a server's power management
version_added: "0.1.0"
description:
  - Runs C(wakewatt inspect --json) on the host and gives its document back as C(ansible_facts.wakewatt).
  - Changes nothing and needs no root; a fact is a C(value), or a C(gap) with the reason why this user or this
      kernel has none.
options:
  topics:
    description:
      - Parts of the machine, as C(wakewatt inspect) names them.
      - An empty list asks for everything, which on a large server is some hundred kilobytes.
    type: list
    elements: str
    default: [idle, freq, pm_qos, kernel, virt]
extends_documentation_fragment:
  - wakewatt.wakewatt.common
  - wakewatt.wakewatt.common.reads
author:
  - the wakewatt authors (@wakewatt)
"""

EXAMPLES = r"""
- name: Look at idle states and the kernel
  wakewatt.wakewatt.wakewatt_facts:
    topics: [idle, kernel]

- name: Say which idle governor decides
  ansible.builtin.debug:
    msg: "{{ ansible_facts.wakewatt.idle.governor.value | default('not known') }}"
"""

RETURN = r"""
ansible_facts:
  description: The document of C(wakewatt inspect --json), schema C(wakewatt/inspect/v1), under the key C(wakewatt).
  returned: success
  type: dict
  sample: {"wakewatt": {"schema": "wakewatt/inspect/v1", "topics": ["idle"], "idle": {"governor": {"value": "menu"}}}}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.wakewatt.wakewatt.plugins.module_utils.cli import PATH_OPTION, Wakewatt


def main():
    module = AnsibleModule(
        argument_spec=dict(
            topics=dict(type="list", elements="str", default=["idle", "freq", "pm_qos", "kernel", "virt"]),
            wakewatt_path=PATH_OPTION,
        ),
        supports_check_mode=True,
    )
    arguments = ["inspect", "--json"] + module.params["topics"]
    document = Wakewatt(module).document(arguments, "wakewatt/inspect/v1")[1]
    module.exit_json(changed=False, ansible_facts=dict(wakewatt=document))


if __name__ == "__main__":
    main()
