// What a person has entered and not saved, kept in this tab while they sign in again.

const UNSAVED = "ctrlb-unsaved";
const forms = () => [...document.forms];

for (const form of forms()) {
  form.addEventListener("input", () => (form.dataset.changed = "yes"));
  form.addEventListener("reset", () => isSaved(form));
}

/** The form's fields are those that the server has. */
export const isSaved = (form) => delete form.dataset.changed;

/** Keep what was entered; false when nothing was. */
export function keepUnsaved() {
  const changed = forms().filter((form) => form.dataset.changed);
  const entered = changed.map((form) => [form.id, fieldsOf(form).map((field) => [field.name, field.value, field.checked])]);
  if (entered.length) sessionStorage.setItem(UNSAVED, JSON.stringify(entered));
  return entered.length > 0;
}

/** Put what was kept back into its fields, but for those that this person cannot change; false when nothing was. */
export function putBackUnsaved() {
  const entered = JSON.parse(sessionStorage.getItem(UNSAVED) ?? "[]");
  const kept = entered.filter(([id]) => !document.forms[id].querySelector("fieldset:disabled"));
  sessionStorage.removeItem(UNSAVED);
  for (const [id, fields] of kept) {
    const form = document.forms[id];
    for (const [name, value, checked] of fields) Object.assign(form.elements[name], { value, checked });
    form.dataset.changed = "yes";
  }
  return kept.length > 0;
}

/** Forget it: the person has signed out. */
export const forgetUnsaved = () => sessionStorage.removeItem(UNSAVED);

const fieldsOf = (form) => [...form.elements].filter((field) => field.name);
