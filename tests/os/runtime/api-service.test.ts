import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { configApiService, configMaintenance } from '../../../src/os/runtime/controllers/api-service.ts'
import { APIServiceConfig } from '../../../src/os/runtime/resources/api-service-config.ts'
import { MaintenanceServiceConfig, MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { SiderolinkConfig } from '../../../src/os/siderolink/resources/siderolink.ts'

test('a machine that has a management server serves it alone until it is configured', async () => {
  const store = new Store()
  const os = new Runtime(store, { log: silent })
  os.register(configMaintenance, configApiService)
  os.start()
  const listens = async (...addresses: string[]) => {
    store.put(NodeAddress, 'current', { addresses, sortAlgorithm: 'v1' })
    await os.settled()
    return store.get(APIServiceConfig, 'api')?.spec.listenAddress
  }
  store.put(MaintenanceServiceRequest, 'maintenance', {})
  store.put(ApiCertificate, 'api', { server: { crt: '', key: '' }, acceptedCAs: [], skipVerifyingClientCert: true })
  expect(await listens('10.0.0.2/24')).toBe(':50000')
  store.put(SiderolinkConfig, 'siderolink', { apiEndpoint: 'https://a', host: 'a:443', joinToken: '', insecure: false, tunnel: false })
  expect(await listens('10.0.0.2/24')).toBeUndefined()
  expect(await listens('10.0.0.2/24', 'fdae:41e4:649b:9302::2/64')).toBeUndefined()
  expect(await listens('10.0.0.2/24', 'fdae:41e4:649b:9303::2/64')).toBe('[fdae:41e4:649b:9303::2]:50000')
  expect(store.get(MaintenanceServiceConfig, 'maintenance')?.spec.reachableAddresses).toEqual(['fdae:41e4:649b:9303::2'])
  store.destroy(MaintenanceServiceRequest, 'maintenance')
  expect(await listens('10.0.0.2/24', 'fdae:41e4:649b:9303::2/64')).toBe(':50000')
  await os.stop()
})
