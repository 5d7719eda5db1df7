/** Installs what the images of the conformance suite are made with, and builds the suite and its images. */
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'
import { conformanceImages } from './images.ts'
import { conformancePrograms } from './programs.ts'

try {
  await prepareHost([{ name: 'mmdebstrap', why: 'makes images of Debian packages', shown: '/usr/bin/mmdebstrap' }])
  await conformanceImages(await conformancePrograms())
} catch (error) {
  failed(error)
}
