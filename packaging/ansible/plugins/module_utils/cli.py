# -*- coding: utf-8 -*-
# Licensed under MIT or Apache-2.0, at your choice (see the LICENSE files of wakewatt).
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How the modules speak with wakewatt: one program, arguments one by one, one JSON document back.

Whether something changes is decided on the documents (schema "wakewatt/tune-plan/v1" and its siblings) and on exit codes, never
on the wording of a message.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

# Exit codes of wakewatt, as far as modules branch on them.
FINE = 0
NOT_RESTORED = 5
DRIFT = 6
REFUSED = 7
BUSY = 8

WORDS = {
    2: "wrong command line",
    3: "could not measure",
    4: "an input could not be read or an output not written",
    5: "a setting could not be put back",
    6: "a setting does not hold",
    7: "a setting is not possible here or was refused; nothing stays changed",
    8: "another wakewatt is changing settings",
    9: "some settings were refused and left out",
}

PATH_OPTION = dict(type="str", default="wakewatt")


class Wakewatt(object):
    """The program on the managed host."""

    def __init__(self, module):
        self.module = module
        path = module.params["wakewatt_path"]
        if "/" in path:
            self.path = path
        else:
            # As root finds it when cron or sudo calls it: /usr/local/bin and the sbin folders are looked into, too.
            self.path = module.get_bin_path(path, required=True, opt_dirs=["/usr/local/bin", "/usr/local/sbin"])

    def run(self, arguments, codes=(FINE,)):
        """Exit code, standard output, standard error; any other exit code fails the task with what was said."""
        code, out, err = self.module.run_command([self.path] + arguments, environ_update={"LC_ALL": "C", "NO_COLOR": "1"})
        if code not in codes:
            self.fail(arguments, code, out, err)
        return code, out, err

    def document(self, arguments, schema, codes=(FINE,)):
        """Exit code and document."""
        code, out, err = self.run(arguments, codes)
        try:
            document = json.loads(out)
        except ValueError:
            self.fail(arguments, code, out, err)
        if document.get("schema") != schema:
            self.module.fail_json(
                msg="%s answered with %r where this collection knows %r; use the collection of that version"
                % (self.path, document.get("schema"), schema)
            )
        return code, document

    def fail(self, arguments, code, out, err):
        """Ends the task: what was run, how it ended, what it said."""
        said = (err or "").strip() or (out or "").strip()
        self.module.fail_json(
            msg="wakewatt %s ended with %s (%s): %s" % (" ".join(arguments), code, WORDS.get(code, "see its message"), said[-2000:]),
            rc=code,
            stderr=err,
        )
