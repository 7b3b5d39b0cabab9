// Tables: sorting by each column, and keyboard access to wide ones.

export function makeTables() {
  for (const table of document.querySelectorAll('table')) {
    for (const button of table.querySelectorAll('th button')) {
      button.addEventListener('click', () => sort(table, button.closest('th')));
    }
  }
  const boxes = [...document.querySelectorAll('.scroll')];
  // A table that scrolls can be focused, so that arrow keys scroll it.
  const update = () => {
    for (const box of boxes) {
      const isWide = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      box.classList.toggle('wide', isWide);
      if (isWide) {
        box.tabIndex = 0;
        box.setAttribute('role', 'region');
        box.setAttribute('aria-label', box.querySelector('caption').textContent);
      } else {
        box.removeAttribute('tabindex');
        box.removeAttribute('role');
        box.removeAttribute('aria-label');
      }
    }
  };
  const observer = new ResizeObserver(update);
  boxes.forEach((box) => observer.observe(box));
  update();
}

function sort(table, heading) {
  const isAscending = heading.getAttribute('aria-sort') !== 'ascending';
  for (const other of table.querySelectorAll('th')) other.setAttribute('aria-sort', 'none');
  heading.setAttribute('aria-sort', isAscending ? 'ascending' : 'descending');
  const column = heading.cellIndex;
  const isNumber = heading.classList.contains('n');
  const key = (row) => {
    const cell = row.cells[column];
    if (cell.classList.contains('none')) return null;
    return isNumber ? Number(cell.dataset.v) : cell.textContent;
  };
  const compare = (a, b) => (isNumber ? a - b : a.localeCompare(b, undefined, { numeric: true }));
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, key: key(row) }));
  rows.sort((a, b) => {
    // Rows without a value are last in both directions.
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return isAscending ? compare(a.key, b.key) : compare(b.key, a.key);
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
  const order = isAscending ? 'ascending' : 'descending';
  document.getElementById('status').textContent = `Sorted by ${heading.textContent}, ${order}`;
}
