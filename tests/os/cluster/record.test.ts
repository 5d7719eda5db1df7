import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { readAffiliate, writeAffiliate, writeEndpoint } from '../../../src/os/cluster/discovery/record.ts'
import { SealError, seal, sealEndpoint, unsealEndpoint } from '../../../src/os/cluster/discovery/sealed.ts'

const key = Buffer.alloc(32, 7)
const node = {
  nodeId: 'n1',
  addresses: ['10.0.0.5', 'fd00::5'],
  hostname: 'node-1.example.com',
  nodename: 'node-1',
  operatingSystem: 'Ichor (v1)',
  machineType: 'controlplane' as const,
  kubespan: {
    publicKey: 'a2V5',
    address: 'fd7f:175a:b97c:5602::5',
    additionalAddresses: ['10.244.1.0/24'],
    endpoints: [],
    excludeAdvertisedNetworks: ['192.168.0.0/16', 'fd00::/8'],
  },
  controlPlane: { port: 6443 },
}

describe('a record of the discovery service', () => {
  test('comes back as it went', () => {
    const endpoints = ['10.0.0.5:51820', '[fd00::5]:51820']
    const sealed = endpoints.map((endpoint) => writeEndpoint(key, endpoint)!)
    expect(sealed.map(({ length }) => length)).toEqual([16, 32])
    expect(readAffiliate(key, writeAffiliate(key, node), sealed)).toEqual({ ...node, kubespan: { ...node.kubespan, endpoints } })
    expect(writeEndpoint(key, 'here')).toBeUndefined()
  })

  test('equal endpoints seal to equal bytes, equal records do not', () => {
    expect(writeEndpoint(key, '10.0.0.5:51820')).toEqual(writeEndpoint(key, '10.0.0.5:51820')!)
    expect(writeAffiliate(key, node)).not.toEqual(writeAffiliate(key, node))
  })

  test('an endpoint that does not open hides no other', () => {
    const other = writeEndpoint(Buffer.alloc(32, 8), '10.0.0.9:51820')!
    const read = readAffiliate(key, writeAffiliate(key, node), [other, new Uint8Array(5), writeEndpoint(key, '10.0.0.5:51820')!])
    expect(read.kubespan?.endpoints).toEqual(['10.0.0.5:51820'])
  })

  test('whatever the service sends is read or refused', () => {
    const opened = fc.uint8Array({ maxLength: 200 }).map((bytes) => seal(key, bytes))
    fc.assert(
      fc.property(
        fc.oneof(opened, fc.uint8Array({ maxLength: 80 })),
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 4 }),
        (data, endpoints) => {
          try {
            readAffiliate(key, data, endpoints)
          } catch (error) {
            expect(error).toBeInstanceOf(SealError)
          }
        },
      ),
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        if (bytes.length < 32) expect(Uint8Array.from(unsealEndpoint(key, sealEndpoint(key, bytes)))).toEqual(bytes)
        try {
          unsealEndpoint(key, bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(SealError)
        }
      }),
    )
  })
})
