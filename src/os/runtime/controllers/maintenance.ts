import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { fingerprint } from '../../../pki/certificate.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { MaintenanceServiceConfig, MaintenanceServiceRequest } from '../resources/maintenance-service.ts'

/** Prints on the console the addresses of a machine in maintenance and the fingerprint of its certificate. */
export const reportMaintenance = (): Controller => {
  let reported = ''
  return defineController({
    name: 'runtime.MaintenanceConsoleController',
    inputs: { request: weak(MaintenanceServiceRequest), config: weak(MaintenanceServiceConfig), certificates: weak(ApiCertificate) },
    outputs: {},
    reconcile({ request, config, certificates, log }) {
      const server = certificates.get('api')?.spec.server?.crt
      const addresses = config.get('maintenance')?.spec.reachableAddresses ?? []
      if (!request.get('maintenance') || !server || addresses.length === 0) return
      const known = fingerprint(Buffer.from(server, 'base64').toString('utf8'))
      const fact = `${addresses.join()} ${known}`
      if (fact === reported) return
      reported = fact
      log.info('maintenance: waiting for a machine configuration', { addresses: addresses.join(), port: 50000, fingerprint: known })
      log.info(`send one with: talosctl apply-config --insecure --nodes ${addresses[0]} --cert-fingerprint ${known} --file FILE`)
    },
  })
}
