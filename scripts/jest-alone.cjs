// Jest runs the tests of one runner at a time. Under this name the usual runner counts as another: its tests have the machine
// to themselves, but for each other.
module.exports = require('jest-runner');
