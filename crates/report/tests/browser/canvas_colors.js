// Number of colors of a canvas. A blank one has one color at most.
(figure) => {
  const canvas = figure.querySelector('canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const colors = new Set();
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3]) colors.add(data[at] * 65536 + data[at + 1] * 256 + data[at + 2]);
  }
  return colors.size;
}
