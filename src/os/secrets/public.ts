/** What other areas may use of this one besides its resources and documents. */

// Discovery trusts the roots of the configuration.
export { trustedRoots } from './trusted-roots.ts'
