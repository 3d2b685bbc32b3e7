/** Sorting and searching a table: by its headings, on narrow screens by a list, and by a field above it. */
function startTable(table) {
  const SEARCH_FROM = 6; // rows: fewer are seen at once
  const body = table.tBodies[0], rows = [...body.rows];
  const headings = [...table.tHead.querySelectorAll("th")];
  const columns = headings.map((heading) => heading.textContent);
  const tools = document.createElement("div");
  tools.className = "table-tools";

  const value = (row, column) => {
    const cell = row.cells[column];
    return cell.classList.contains("number") ? Number(cell.dataset.value ?? -Infinity) : wholeText(cell).toLowerCase();
  };
  /** Without the beginning that stands for a long statement. */
  const wholeText = (cell) => (cell.querySelector("details > code") ?? cell).textContent;
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  /** Numbers most first, texts in order; the same column again turns the order round. */
  function sort(column, isAgain) {
    const isText = !headings[column].classList.contains("number");
    const before = headings[column].getAttribute("aria-sort");
    const isUp = isAgain && before ? before === "descending" : isText;
    const sorted = rows.map((row) => [value(row, column), row]).sort(([a], [b]) => (isUp ? compare(a, b) : compare(b, a)));
    body.replaceChildren(...sorted.map(([, row]) => row));
    for (const heading of headings) heading.removeAttribute("aria-sort");
    headings[column].setAttribute("aria-sort", isUp ? "ascending" : "descending");
    list.value = String(column);
  }

  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.textContent = columns[column];
    button.addEventListener("click", () => sort(column, true));
    heading.replaceChildren(button);
  });
  const list = document.createElement("select");
  list.append(...columns.map((name, column) => new Option(name, String(column))));
  list.addEventListener("change", () => sort(Number(list.value), false));
  const listLabel = document.createElement("label");
  listLabel.className = "sort-list";
  listLabel.append("Sort by ", list);
  tools.append(listLabel);

  if (rows.length >= SEARCH_FROM) {
    const field = document.createElement("input");
    field.type = "search";
    const found = document.createElement("output");
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let left = 0;
      for (const row of rows) {
        const isFound = wholeText(row.cells[row.cells.length - 1]).toLowerCase().includes(wanted);
        row.hidden = !isFound;
        left += isFound ? 1 : 0;
      }
      found.textContent = wanted ? `${count(left)} of ${count(rows.length)}` : "";
    });
    const fieldLabel = document.createElement("label");
    fieldLabel.append(`Search ${table.dataset.sortable.toLowerCase()} `, field);
    tools.append(fieldLabel, found);
  }
  table.before(tools);
}
for (const table of document.querySelectorAll("table[data-sortable]")) startTable(table);
