// A box before the first card of a page hides the cards without its text. Letters and digits alone count.
const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
const cards = [...document.querySelectorAll(".card")].map((card) => ({ card, text: plain(card.textContent) }));
if (cards.length) {
  const box = document.createElement("label");
  box.className = "filter";
  box.innerHTML = 'Show <input type="search" placeholder="part of a name" autocomplete="off"><output></output>';
  const [input, count] = box.children;
  input.addEventListener("input", () => {
    for (const { card, text } of cards) card.hidden = !text.includes(plain(input.value));
    count.value = `${cards.filter(({ card }) => !card.hidden).length} of ${cards.length}`;
  });
  cards[0].card.before(box);
}
