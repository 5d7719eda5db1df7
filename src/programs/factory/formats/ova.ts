/** Virtual machines as VMware and others import them (OVF, DSP0243): description, hashes and disk in a tar archive. */
import { createReadStream, createWriteStream, statSync } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { writeTar } from '../../../wire/tar/write.ts'

/** What the machine of the description is. */
export interface Appliance {
  readonly name: string
  readonly version: string
  readonly firmware: 'uefi' | 'bios'
  /** Bytes of its disk. */
  readonly disk: number
}

const machine = { processors: 2, mebibytes: 4096 } as const

/** Writes the archive around a stream-optimized disk. Equal content gives equal bytes. */
export async function writeOva(path: string, vmdk: string, appliance: Appliance): Promise<void> {
  const { size } = statSync(vmdk)
  const [ovfName, diskName, hashesName] = ['ovf', 'vmdk', 'mf'].map((ending) => `${appliance.name}.${ending}`) as [string, string, string]
  const ovf = Buffer.from(descriptionOf(appliance, diskName, size))
  const [ovfHash, diskHash] = [new Bun.CryptoHasher('sha256').update(ovf), new Bun.CryptoHasher('sha256')]
  for await (const chunk of createReadStream(vmdk, { highWaterMark: 1 << 20 })) diskHash.update(chunk)
  const hashes = Buffer.from(`SHA256(${ovfName})= ${ovfHash.digest('hex')}\nSHA256(${diskName})= ${diskHash.digest('hex')}\n`)
  const file = (name: string, content: Uint8Array | AsyncIterable<Uint8Array>, length: number) =>
    ({ path: name, type: 'file', mode: 0o644, size: length, content }) as const
  const members = [
    file(ovfName, ovf, ovf.length),
    file(hashesName, hashes, hashes.length),
    file(diskName, createReadStream(vmdk, { highWaterMark: 1 << 20 }), size),
  ]
  await pipeline(Readable.from(writeTar(members)), createWriteStream(path))
}

const item = (parts: Record<string, string | number>): string =>
  `      <Item>\n${Object.entries(parts)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => `        <rasd:${name}>${value}</rasd:${name}>\n`)
    .join('')}      </Item>`

/** Resource types of CIM (DSP1041): processor, memory, SCSI controller, network, disk. */
const resource = { processor: 3, memory: 4, controller: 6, network: 10, disk: 17 } as const

function descriptionOf({ name, version, firmware, disk }: Appliance, diskName: string, length: number): string {
  const items = [
    item({ ElementName: 'processors', InstanceID: 1, ResourceType: resource.processor, VirtualQuantity: machine.processors }),
    item({
      AllocationUnits: 'byte * 2^20',
      ElementName: 'memory',
      InstanceID: 2,
      ResourceType: resource.memory,
      VirtualQuantity: machine.mebibytes,
    }),
    item({ Address: 0, ElementName: 'SCSI controller', InstanceID: 3, ResourceSubType: 'VirtualSCSI', ResourceType: resource.controller }),
    item({
      AddressOnParent: 0,
      ElementName: 'disk',
      HostResource: 'ovf:/disk/disk1',
      InstanceID: 4,
      Parent: 3,
      ResourceType: resource.disk,
    }),
    item({
      AddressOnParent: 7,
      AutomaticAllocation: 'true',
      Connection: 'VM Network',
      ElementName: 'network',
      InstanceID: 5,
      ResourceSubType: 'VmxNet3',
      ResourceType: resource.network,
    }),
  ]
  const boot = firmware === 'uefi' ? '      <vmw:Config ovf:required="false" vmw:key="firmware" vmw:value="efi"/>\n' : ''
  return `<?xml version="1.0" encoding="UTF-8"?>
<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData" xmlns:vmw="http://www.vmware.com/schema/ovf" xmlns:vssd="http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData">
  <References>
    <File ovf:href="${diskName}" ovf:id="file1" ovf:size="${length}"/>
  </References>
  <DiskSection>
    <Info>Disks</Info>
    <Disk ovf:capacity="${disk}" ovf:capacityAllocationUnits="byte" ovf:diskId="disk1" ovf:fileRef="file1" ovf:format="http://www.vmware.com/interfaces/specifications/vmdk.html#streamOptimized"/>
  </DiskSection>
  <NetworkSection>
    <Info>Networks</Info>
    <Network ovf:name="VM Network">
      <Description>The network of the machine</Description>
    </Network>
  </NetworkSection>
  <VirtualSystem ovf:id="${name}">
    <Info>Ichor ${version}</Info>
    <Name>${name}</Name>
    <OperatingSystemSection ovf:id="101" vmw:osType="other5xLinux64Guest">
      <Info>Linux, 64 bits</Info>
    </OperatingSystemSection>
    <VirtualHardwareSection>
      <Info>Hardware</Info>
      <System>
        <vssd:ElementName>Hardware</vssd:ElementName>
        <vssd:InstanceID>0</vssd:InstanceID>
        <vssd:VirtualSystemIdentifier>${name}</vssd:VirtualSystemIdentifier>
        <vssd:VirtualSystemType>vmx-15</vssd:VirtualSystemType>
      </System>
${items.join('\n')}
${boot}    </VirtualHardwareSection>
  </VirtualSystem>
</Envelope>
`
}
