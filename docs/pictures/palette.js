// The pixels of a picture as places in a palette of its 256 commonest colours: a page of ours has few that matter, and
// the picture becomes a third as large. Evaluated in a browser, which decodes the picture.
async (address) => {
  const image = new Image();
  image.src = address;
  await image.decode();
  const paint = new OffscreenCanvas(image.width, image.height).getContext("2d");
  paint.drawImage(image, 0, 0);
  const { data } = paint.getImageData(0, 0, image.width, image.height);
  const colours = new Uint32Array(data.length / 4);
  const counts = new Map();
  for (let i = 0; i < colours.length; i += 1) {
    const colour = (data[4 * i] << 16) | (data[4 * i + 1] << 8) | data[4 * i + 2];
    colours[i] = colour;
    counts.set(colour, (counts.get(colour) || 0) + 1);
  }
  const palette = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 256).map(([colour]) => colour);
  const far = (a, b) =>
    ((a >> 16) - (b >> 16)) ** 2 + (((a >> 8) & 255) - ((b >> 8) & 255)) ** 2 + ((a & 255) - (b & 255)) ** 2;
  const places = new Map();
  for (const colour of counts.keys()) {
    let nearest = 0;
    for (let i = 1; i < palette.length; i += 1) {
      if (far(colour, palette[i]) < far(colour, palette[nearest])) nearest = i;
    }
    places.set(colour, nearest);
  }
  let pixels = "";
  for (const colour of colours) pixels += String.fromCharCode(places.get(colour));
  return { width: image.width, height: image.height, palette, pixels: btoa(pixels) };
};
