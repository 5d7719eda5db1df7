/** What other areas may use of this one besides its resources and documents. */

// A node announces the endpoint of its mesh.
export { endpointOf } from './mesh.ts'
