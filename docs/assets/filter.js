// A box before the first card of a page hides the cards that lack one of its words or numbers, whatever stands between them.
const plain = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
const parts = (text) => text.toLowerCase().match(/\p{L}+|\p{N}+/gu) ?? [];
const cards = [...document.querySelectorAll(".card")].map((card) => ({ card, text: plain(card.textContent) }));
if (cards.length) {
  const box = document.createElement("label");
  box.className = "filter";
  box.innerHTML = 'Show <input type="search" placeholder="part of a name" autocomplete="off"><output></output>';
  const [input, count] = box.children;
  input.addEventListener("input", () => {
    for (const { card, text } of cards) card.hidden = !parts(input.value).every((part) => text.includes(part));
    count.value = `${cards.filter(({ card }) => !card.hidden).length} of ${cards.length}`;
  });
  cards[0].card.before(box);
}
