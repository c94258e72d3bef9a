// What the page shows until its views are there: its title.

export function show() {
  document.getElementById("gmd").textContent = document.title;
}

show();
