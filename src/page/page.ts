// The script of a page: what a reader can do beyond reading. A page is whole without it.
import { addPictureCopies, addTableCopies } from "./copy";
import { startFormulas } from "./formulas";

addPictureCopies();
addTableCopies();
startFormulas();
