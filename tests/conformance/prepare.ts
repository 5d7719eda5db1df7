/** Installs what the images of the conformance suite are made with, and builds the suite and its images. */
import { failed } from '../../rootfs/build/failure.ts'
import { prepareHost } from '../../rootfs/build/host.ts'
import { conformanceImages } from './images.ts'
import { conformancePrograms } from './programs.ts'

try {
  await prepareHost([
    { name: 'mmdebstrap', why: 'makes images of Debian packages', shown: '/usr/bin/mmdebstrap' },
    { name: 'gcc', why: 'compiles the shell of the images', shown: '/usr/bin/gcc' },
    { name: 'libc6-dev', why: 'the C library of that shell', shown: '/usr/include/stdlib.h' },
    { name: 'make', why: 'builds that shell', shown: '/usr/bin/make' },
    { name: 'bzip2', why: 'unpacks its sources', shown: '/usr/bin/bzip2' },
  ])
  await conformanceImages(await conformancePrograms())
} catch (error) {
  failed(error)
}
