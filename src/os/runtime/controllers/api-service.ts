import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { formatHostPort } from '../../../wire/host-port.ts'
import { addressOnly, isManagementAddress } from '../../../wire/prefix.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { SiderolinkConfig } from '../../siderolink/resources/siderolink.ts'
import { APIServiceConfig } from '../resources/api-service-config.ts'
import { MaintenanceServiceConfig, MaintenanceServiceRequest } from '../resources/maintenance-service.ts'

const port = 50_000
/** The machine API listens on this port of every address. */
const listenAddress = `:${port}`

/**
 * The addresses of the API while there is no configuration. A machine that has a management server serves it alone, at its
 * address in the server's network, and nobody before it has one.
 */
export const configMaintenance: Controller = defineController({
  name: 'runtime.MaintenanceConfigController',
  effects: 'none',
  inputs: { addresses: weak(NodeAddress, { id: 'current' }), management: weak(SiderolinkConfig, { id: 'siderolink' }) },
  outputs: { config: exclusive(MaintenanceServiceConfig) },
  reconcile({ addresses, management, config }) {
    const reachable = (addresses.get('current')?.spec.addresses ?? []).map(addressOnly)
    if (!management.get('siderolink')) return config.put('maintenance', { listenAddress, reachableAddresses: reachable })
    const managed = reachable.find(isManagementAddress)
    if (managed) config.put('maintenance', { listenAddress: formatHostPort(managed, port), reachableAddresses: [managed] })
  },
})

/** apid's mode: in maintenance it serves all clients, read-only and for a configuration; otherwise holders of certificates. */
export const configApiService: Controller = defineController({
  name: 'runtime.APIServiceConfigController',
  effects: 'none',
  inputs: {
    request: weak(MaintenanceServiceRequest),
    maintenance: weak(MaintenanceServiceConfig),
    certificates: weak(ApiCertificate),
  },
  outputs: { config: exclusive(APIServiceConfig) },
  reconcile({ request, maintenance, certificates, config }) {
    const waiting = request.get('maintenance') !== undefined
    const maintained = maintenance.get('maintenance')?.spec.listenAddress
    if (waiting && maintained === undefined) return
    if (!certificates.get('api')) return
    config.put('api', {
      listenAddress: waiting && maintained !== undefined ? maintained : listenAddress,
      nodeRoutingDisabled: waiting,
      readonlyRoleMode: waiting,
      skipVerifyingClientCert: waiting,
    })
  },
})
