"""Index entries for the names in the tables of the reference, so that the search for a name leads to its row.

Each name in code font in the first column, or in a column with the title `name`, gets an entry. Examples are training options,
environment variables, GPU models, operators, warnings and fields of file formats. The entries are main ones, because the search
lists the others last. A GPU model gets a second entry with blanks in place of hyphens, because readers search for "RTX 4090".
"""

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform


class IndexTables(SphinxTransform):
    default_priority = 500  # before 850, when Sphinx collects the entries

    def apply(self, **kwargs):
        if not self.env.docname.startswith("reference/"):
            return
        for table in list(self.document.findall(nodes.table)):
            entries = [entry for row in table.findall(nodes.row) for entry in self._entries(table, row)]
            if entries:
                table.parent.insert(table.parent.index(table), addnodes.index(entries=entries))

    def _entries(self, table, row):
        titles = [cell.astext() for head in table.findall(nodes.thead) for cell in head.findall(nodes.entry)]
        if isinstance(row.parent, nodes.thead):
            return
        for column, cell in enumerate(row.children):
            if column > 0 and titles[column] != "name":
                continue
            for name in (literal.astext() for literal in cell.findall(nodes.literal)):
                if name.isdigit():
                    continue
                if not row["ids"]:
                    self.document.set_id(row)
                names = [name.replace(";", ",")]
                if self.env.docname == "reference/gpus" and "-" in name:
                    names.append(name.replace("-", " "))
                yield from (("single", each, row["ids"][0], "main", None) for each in names)


def setup(app):
    app.add_transform(IndexTables)
    return {"parallel_read_safe": True}
