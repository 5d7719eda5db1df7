/** What other areas may use of this one besides its resources and documents. */

// Explanations query the time servers.
export { queryTimeServer } from './time-server.ts'
