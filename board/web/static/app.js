// What makes the pages quicker to use. Everything also works without: forms and links do the work.
import { listenForKeys } from "./keys.js";
import { countDown } from "./undo.js";
import { keepFresh } from "./pulse.js";
import { helpForms } from "./forms.js";
import { followTask } from "./follow.js";
import { keepDrafts } from "./drafts.js";
import { watchConnection } from "./away.js";
import { keepShowing } from "./fresh.js";
import { bePresent } from "./present.js";

keepDrafts();
listenForKeys();
countDown();
helpForms();
keepFresh();
followTask();
watchConnection();
keepShowing();
bePresent();
