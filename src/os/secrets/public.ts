/** What other areas may use of this one besides its resources and documents. */

// Kubernetes provides the service that the certificates of the machine API name.
export { machineApiService } from './machine-api-service.ts'
