import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { APIServiceConfig } from '../resources/api-service-config.ts'
import { MaintenanceServiceConfig, MaintenanceServiceRequest } from '../resources/maintenance-service.ts'

/** The machine API listens on this port of every address. */
const listenAddress = ':50000'

/** The addresses of the API while there is no configuration. */
export const configMaintenance: Controller = defineController({
  name: 'runtime.MaintenanceConfigController',
  effects: 'none',
  inputs: { addresses: weak(NodeAddress, { id: 'current' }) },
  outputs: { config: exclusive(MaintenanceServiceConfig) },
  reconcile({ addresses, config }) {
    const reachable = (addresses.get('current')?.spec.addresses ?? []).map((address) => address.slice(0, address.indexOf('/')))
    config.put('maintenance', { listenAddress, reachableAddresses: reachable })
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
