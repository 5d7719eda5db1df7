/** What other areas may use of this one besides its resources and documents. */

// A container joins a management server under the UUID of its identity.
export { machineUuid } from './machine-id.ts'
