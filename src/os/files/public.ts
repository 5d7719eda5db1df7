/** What other areas may use of this one besides its resources and documents. */

// The boot sequence writes these files.
export { writeUserFiles } from './user-files.ts'
