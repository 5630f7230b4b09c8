# -*- coding: utf-8 -*-
# SPDX-License-Identifier: MIT OR Apache-2.0

"""What the modules of this collection document alike."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


class ModuleDocFragment(object):

    DOCUMENTATION = r"""
options:
  wakewatt_path:
    description:
      - The program on the host, by name (looked for in E(PATH), /usr/local/bin and /usr/local/sbin) or by path.
    type: str
    default: wakewatt
"""

    READS = r"""
attributes:
  check_mode:
    description: Runs the same in check mode.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
"""
