/** What other areas may use of this one besides its resources and documents. */

// Keys can require it, and the state of security reports it.
export { isSecureBoot } from './secure-boot.ts'
