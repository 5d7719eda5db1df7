/** What other areas may use of this one besides its resources and documents. */

// The start of the machine checks the kernel parameter.
export { parseApiUrl } from './api-url.ts'
